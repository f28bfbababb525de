/**
 * The prompt doctor: a list of prompts, pasted or from a file, what of it could be reused in this order, what breaks it,
 * and what each fix would gain. The server's tokenizer is asked; nothing is sent to the model.
 */

import { byId, make, setAttribute, setChildren, setHidden, setStyle, setText } from "../../dom.js";
import { clip, count, percent } from "../../format.js";
import { presetById, textOf } from "../../presets.js";
import { primaryServer } from "../../selectors.js";
import { linesOf, promptsOf, isJsonLines, requestsAt } from "../../why/prompt_list.js";
import { language, t } from "../../words.js";
import { findingWords } from "./fix.js";

const SPAN_CHARS = 80;

/** Prompts to try it with: the same rules, behind the time at which each was sent. */
export function examplePrompts(tag) {
  const { system, questions } = textOf(presetById("support"), tag);
  const said = { en: (clock) => `It is ${clock}.`, zh: (clock) => `现在是 ${clock}。` }[tag];
  const times = ["09:14:03", "09:15:41", "09:15:58"];
  return times.map((clock, i) => `${said(clock)}\n${system}\n\n${questions[i]}`).join("\n---\n");
}

/** What is said of a report: {now, fixed, pool, left}; "" where there is nothing to say. Pure. */
export function reportWords(report) {
  const { hit_tokens: hit, prompt_tokens: tokens, hit_ratio: ratio, fixed_hit_tokens: fixed, left_out: left } = report;
  const better = fixed !== null && fixed > hit;
  return {
    now: t("prompts.now", { n: tokens, hit, ratio: percent(ratio) }),
    fixed: better ? t("prompts.fixed", { n: fixed, ratio: percent(fixed / tokens) }) : t(report.breakers.length > 0 ? "prompts.not-fixed" : "prompts.clean"),
    pool: t("prompts.pool", { n: report.requests, blocks: report.num_gpu_blocks, size: report.block_size, endless: report.unbounded_hit_tokens }),
    left: [left > 0 ? t("prompts.left-out", { n: left }) : "", ...(report.assumed ?? []).map((name) => t(`prompts.assumed.${name}`, { value: String(report[name]) }))].filter(Boolean).join(" "),
  };
}

/** `examining` of why/examining.js; `onFix(before, after)` opens fix and resend. */
export function createPrompts({ examining, getState, onFix }) {
  const text = byId("prompts-text");
  const root = byId("prompts");
  let file = null;
  let drawn = [];

  byId("prompts-form").addEventListener("submit", (event) => {
    event.preventDefault();
    examine();
  });
  byId("prompts-cancel").addEventListener("click", () => examining.cancel());
  byId("prompts-example").addEventListener("click", () => put(null, examplePrompts(language())));
  byId("prompts-file").addEventListener("change", (event) => event.target.files[0] && put(event.target.files[0]));
  text.addEventListener("input", () => put(null, text.value));
  root.addEventListener("dragover", (event) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setAttribute(root, "data-over", true);
  });
  root.addEventListener("dragleave", (event) => !root.contains(event.relatedTarget) && setAttribute(root, "data-over", null));
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    setAttribute(root, "data-over", null);
    if (event.dataTransfer.files.length > 0) put(event.dataTransfer.files[0]);
  });

  /** What is examined next: a file, or else the text. */
  function put(chosen, words = "") {
    file = chosen;
    if (text.value !== words) text.value = words;
    if (file === null) byId("prompts-file").value = "";
    say();
  }

  function say() {
    const n = promptsOf(text.value).length;
    const what = file !== null ? t("prompts.file", { name: file.name }) : isJsonLines(text.value) ? t("prompts.lines") : n > 0 ? t("prompts.count", { n }) : "";
    setText(byId("prompts-what"), what);
  }

  async function examine() {
    const lines = file === null ? linesOf(text.value, primaryServer(getState())?.models[0] ?? null) : await file.text();
    if (lines.trim() !== "") examining.start(lines);
  }

  function fix([request, against]) {
    const [before, after] = requestsAt(examining.state.lines, [against, request]);
    if (before !== null && after !== null) onFix(before, after);
  }

  return (_, ui) => {
    const inputs = [ui.prompts, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    say();
    drawProgress(ui.prompts);
    setHidden(byId("prompts-report"), ui.prompts.report === null);
    if (ui.prompts.report !== null) drawReport(ui.prompts.report, fix);
    return null;
  };
}

function drawProgress({ phase, stage, done, total, error }) {
  const working = phase === "working";
  setAttribute(byId("prompts-examine"), "disabled", working);
  setHidden(byId("prompts-cancel"), !working);
  setHidden(byId("prompts-progress"), !working);
  const bar = byId("prompts-bar");
  setAttribute(bar, "max", total || 1);
  setAttribute(bar, "value", stage === null ? null : done);
  let said = "";
  if (working) said = stage === null ? t("prompts.sending") : t(`prompts.stage.${stage}`, { n: total, done });
  setText(byId("prompts-stage"), said);
  const ends = { failed: error ?? t("prompts.broken"), cancelled: t("prompts.cancelled") };
  setText(byId("prompts-said"), ends[phase] ?? "");
}

function drawReport(report, fix) {
  const words = reportWords(report);
  for (const part of ["now", "fixed", "pool", "left"]) setText(byId(`prompts-${part}`), words[part]);
  const { hit_tokens: hit, prompt_tokens: tokens, fixed_hit_tokens: fixed } = report;
  setStyle(byId("prompts-bar-now"), "width", `${tokens ? (100 * hit) / tokens : 0}%`);
  setStyle(byId("prompts-bar-fixed"), "width", `${tokens ? (100 * Math.max(0, (fixed ?? hit) - hit)) / tokens : 0}%`);
  setChildren(byId("prompts-breakers"), report.breakers.map((breaker, i) => breakerRow(breaker, i, fix)));
  const unreadable = report.unreadable_lines ?? [];
  setText(byId("prompts-unreadable"), unreadable.length === 0 ? "" : t("prompts.unreadable", { n: unreadable.length, line: String(unreadable[0][0]), reason: unreadable[0][1] }));
}

function breakerRow(breaker, i, fix) {
  const { name, advice } = findingWords(breaker);
  const row = make("li", {}, make("h3", {}, `${i + 1}. ${name}`));
  row.append(make("p", { class: "lost" }, t("prompts.lost", { n: breaker.lost_tokens, requests: t("unit.requests", { n: breaker.requests }) })));
  row.append(make("p", {}, advice));
  const [example] = breaker.examples;
  if (example) {
    const [request, against, before, after] = example;
    const shown = (text) => make("mark", { dir: "auto" }, text === "" ? t("fix.nothing") : clip(text, SPAN_CHARS));
    row.append(make("p", { class: "source" }, t("prompts.example", { one: count(against + 1), other: count(request + 1) }), " ", shown(before), " → ", shown(after)));
  }
  if (breaker.gained_tokens !== null) row.append(make("p", { class: "gained" }, t("prompts.gained", { n: breaker.gained_tokens })));
  if (example) {
    const button = make("button", { type: "button", class: "small" }, t(breaker.remedy === null ? "fix.open-advice" : "fix.open"));
    button.addEventListener("click", () => fix(example));
    row.append(button);
  }
  return row;
}
