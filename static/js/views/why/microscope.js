/**
 * The microscope: one request beside the nearest prompt that was known when it was sent, token by token. Only a window of
 * the prompt is asked for and drawn, so that a prompt of 100,000 tokens is as quick as a short one.
 */

import { byId, make, setAttribute, setChildren, setHidden, setText } from "../../dom.js";
import { count, duration, requestName } from "../../format.js";
import { CLOSED, PAGE_TOKENS, firstShown, mapOf, relation, rowsOf, visible, windowStart } from "../../why/microscope.js";
import { language, t, verdictWords } from "../../words.js";
import { verdictLinks } from "./verdict.js";

const SLIDE_MS = 120;

/** What is said of a comparison: {compared, difference, recomputed}. Pure. */
export function comparisonWords(answer) {
  const { nearest, common_tokens: common, first_difference: difference, recomputed } = answer;
  const how = relation(answer);
  const compared =
    how === "nothing" ? t("microscope.no-nearest") : t(nearest.request === null ? "microscope.with-blocks" : "microscope.with", { name: requestName(nearest.request), n: nearest.tokens });
  const place = difference && { token: String(difference.token), block: difference.block, n: common, section: sectionWords(difference.section), texts: textsOf(difference) };
  let said = "";
  if (how === "whole") said = t("microscope.whole", { n: common });
  if (how === "ends") said = t("microscope.ends", place);
  if (how === "differs") said = t(common === 0 ? "microscope.differs-at-once" : "microscope.differs", place);
  const { tokens, about_ms: about, low_ms: low, high_ms: high } = recomputed;
  const cost = about === null ? "" : t("microscope.cost", { about: duration(about), low: duration(low), high: duration(high) });
  const key = how === "differs" ? "microscope.recomputed" : "microscope.computed";
  return { compared, difference: said, recomputed: t(key, { n: tokens, cost }) };
}

function textsOf({ text_here: here, text_there: there }) {
  return here === null || there === null ? "" : t("microscope.texts", { here: visible(here), there: visible(there) });
}

/** "in the system prompt", "in message 3 (user)" … Pure. */
export function sectionWords(section) {
  if (section === null || section === undefined) return t("microscope.section.unknown");
  const { kind, role, index } = section;
  return t(`microscope.section.${kind}`, { role: role ?? "", turn: index });
}

/** `getJson` asks for a comparison; `set(fields)` keeps it as ui.microscope. Answers {view, open(id)}. */
export function createMicroscope({ getJson, set, causes }) {
  const dialog = byId("microscope");
  const slider = byId("microscope-slider");
  let now = CLOSED;
  let abort = null;
  let sliding = 0;
  let drawn = [];

  const keep = (fields) => set({ microscope: (now = { ...now, ...fields }) });

  async function look(id, start) {
    abort?.abort();
    const mine = (abort = new AbortController());
    const other = id !== now.id;
    keep({ id, start, phase: "asking", error: null, ...(other ? { answer: null } : {}) });
    const query = start === null ? "" : `?start=${start}&count=${PAGE_TOKENS}`;
    try {
      const answer = await getJson(`api/requests/${encodeURIComponent(id)}/comparison${query}`, { signal: mine.signal });
      if (abort === mine) keep({ phase: "done", answer });
    } catch (error) {
      if (abort === mine) keep({ phase: "failed", error: error.message });
    }
  }

  function open(id) {
    look(id, null);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }

  const longest = ({ prompt_tokens: here, nearest }) => Math.max(here, nearest?.tokens ?? 0);
  const lastStart = (answer) => windowStart(Math.max(0, longest(answer) - 1), answer.block_size);
  function page(steps) {
    const { answer } = now;
    if (answer === null) return;
    const unit = answer.block_size || 1;
    const shown = Math.floor((now.start ?? answer.here.start) / unit) * unit;
    look(now.id, Math.min(lastStart(answer), Math.max(0, shown + steps * Math.max(unit, Math.floor(PAGE_TOKENS / unit) * unit))));
  }

  byId("microscope-close").addEventListener("click", () => dialog.close());
  byId("microscope-earlier").addEventListener("click", () => page(-1));
  byId("microscope-later").addEventListener("click", () => page(1));
  byId("microscope-difference-button").addEventListener("click", () => now.answer && look(now.id, windowStart(now.answer.common_tokens, now.answer.block_size)));
  byId("microscope-fold").addEventListener("click", () => page(-1));
  slider.addEventListener("input", () => {
    clearTimeout(sliding);
    sliding = setTimeout(() => look(now.id, windowStart(Number(slider.value), now.answer?.block_size)), SLIDE_MS);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    abort?.abort();
    abort = null;
    keep(CLOSED);
  });

  function view(state, ui) {
    const record = state.requests[ui.microscope.id]?.record ?? null;
    const inputs = [ui.microscope, record, ui.paint];
    if (inputs.some((input, i) => input !== drawn[i]) && ui.microscope.id !== null) draw(ui.microscope, record);
    drawn = inputs;
    return null;
  }

  function draw({ id, phase, answer, error }, record) {
    setText(byId("microscope-title"), t("microscope.title", { name: requestName(id) }));
    const words = record?.verdict ? verdictWords(record.verdict) : { text: "", detail: null };
    setText(byId("microscope-verdict"), words.text);
    setText(byId("microscope-detail"), words.detail ?? "");
    setChildren(byId("microscope-causes"), record?.verdict ? verdictLinks(record.verdict, causes.open) : []);
    setText(byId("microscope-said"), phase === "failed" ? error : answer === null ? t("microscope.reading") : "");
    setHidden(byId("microscope-body"), answer === null || phase === "failed");
    setAttribute(dialog, "data-phase", phase);
    setAttribute(dialog, "lang", language() === "zh" ? "zh-Hans" : "en");
    if (answer !== null) drawComparison(answer);
  }

  function drawComparison(answer) {
    const { block_size: size, common_tokens: common, here, there, cached_tokens: cached, nearest } = answer;
    const words = comparisonWords(answer);
    for (const part of ["compared", "difference", "recomputed"]) setText(byId(`microscope-${part}`), words[part]);
    drawMap(answer);
    const from = firstShown(answer);
    setHidden(byId("microscope-fold"), from === 0);
    setText(byId("microscope-fold"), t(from <= common ? "microscope.fold" : "microscope.fold-mixed", { n: from }));
    drawSide("here", here, { common, size, cached, from });
    setHidden(byId("microscope-there"), there === null);
    if (there !== null) {
      setText(byId("microscope-there-title"), nearest.request === null ? t("microscope.there-blocks") : t("microscope.there", { name: requestName(nearest.request) }));
      drawSide("there", there, { common, size, from });
    }
    const end = Math.max(here.end, there?.end ?? 0);
    setText(byId("microscope-range"), t("microscope.range", { first: count(from + 1), last: count(end), n: answer.prompt_tokens }));
    setAttribute(byId("microscope-earlier"), "disabled", here.start === 0);
    setAttribute(byId("microscope-later"), "disabled", end >= longest(answer));
  }

  function drawMap(answer) {
    const whole = longest(answer);
    slider.max = String(Math.max(0, whole - 1));
    slider.step = String(answer.block_size || 1);
    if (document.activeElement !== slider) slider.value = String(firstShown(answer));
    setAttribute(slider, "aria-valuetext", t("microscope.at", { n: answer.here.start + 1 }));
    const map = byId("microscope-map");
    const share = (tokens) => `${((100 * tokens) / whole).toFixed(3)}%`;
    const runs = mapOf(answer).map(({ kind, tokens }) => {
      const node = make("i", { "data-kind": kind });
      node.style.flex = `0 0 ${share(tokens)}`;
      return node;
    });
    const shown = make("b", { class: "map-window" });
    shown.style.left = share(firstShown(answer));
    shown.style.width = share(Math.max(answer.here.end, answer.there?.end ?? 0) - firstShown(answer));
    const mark = make("b", { class: "map-mark" }, "≠");
    mark.style.left = share(answer.common_tokens);
    setChildren(map, relation(answer) === "differs" ? [...runs, shown, mark] : [...runs, shown]);
  }

  return { view, open };
}

function drawSide(name, side, options) {
  const root = byId(`microscope-${name}-blocks`);
  const hidden = byId(`microscope-${name}-hidden`);
  setHidden(hidden, side.groups !== null);
  if (side.groups === null) setText(hidden, t(side.text_hidden ? "microscope.hidden" : "microscope.no-text"));
  const rows = rowsOf(side, options);
  setChildren(root, rows.length === 0 ? [make("li", { class: "past-end" }, t("microscope.past-end"))] : rows.map((row) => blockRow(row, options.size)));
}

function blockRow({ block, groups }, size) {
  const name = make("span", { class: "block-name" }, size ? t("card.block", { n: block + 1 }) : "");
  return make("li", {}, name, make("span", { class: "tokens" }, ...groups.map(tokenCell)));
}

function tokenCell({ start, count: held, text, place, kind }) {
  const words = text === null ? "" : visible(text);
  const cell = make("span", { class: "token", dir: "auto", "data-place": place, "data-kind": kind, "data-count": held > 1 ? held : null, "data-hidden": text === null }, words);
  if (place === "first") cell.prepend(make("span", { class: "token-mark" }, "≠"));
  cell.title = held > 1 ? t("microscope.token-group", { first: String(start + 1), last: String(start + held) }) : t("microscope.token", { token: String(start + 1) });
  return cell;
}
