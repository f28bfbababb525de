/** "Try it": the form, the streaming answer and the sentence on what happened. */

import { receiverOf } from "../chosen_server.js";
import { changeEnd, changeStart, isBusy } from "../composer.js";
import { byId, make, setAttribute, setChildren, setHidden, setStyle, setText } from "../dom.js";
import { UNKNOWN, duration } from "../format.js";
import { PRESETS, presetById, textOf } from "../presets.js";
import { warmth } from "../selectors.js";
import { language, t, verdictWords } from "../words.js";

/** How long the sentence is kept in sight while what stands around it grows, unless whoever looks moves the page. */
const FOLLOW_MS = 4000;

/** Answers {view, draft, show}. */
export function createTry({ composer, getState }) {
  const system = byId("system-prompt");
  const question = byId("question");
  const preset = byId("preset");
  const cold = byId("cold");
  const buttons = ["send", "send-twice", "send-all"].map(byId);
  const stop = byId("stop");
  let chosen = PRESETS[0];
  let questions = [];
  let shown = null;

  preset.append(...PRESETS.map(({ id }) => make("option", { value: id })));
  preset.addEventListener("change", () => {
    load(preset.value);
    speak();
  });
  byId("change-start").addEventListener("click", () => edit(changeStart));
  byId("change-end").addEventListener("click", () => edit(changeEnd));
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send([question.value]);
  });
  byId("send-twice").addEventListener("click", () => send([question.value, question.value]));
  byId("send-all").addEventListener("click", () => send(questions, chosen.turns));
  stop.addEventListener("click", () => composer.stop());
  load(PRESETS[0].id);

  function load(id) {
    chosen = presetById(id);
    shown = textOf(chosen, language());
    questions = shown.questions;
    system.value = shown.system;
    question.value = questions[0];
    setChildren(byId("questions"), questions.map((text) => make("option", { value: text })));
  }

  /** Without a system prompt it is the question that begins the prompt. */
  function edit(change) {
    const field = system.value === "" ? question : system;
    field.value = change(field.value);
  }

  /** The presets' words in the page's language; a text that wasn't touched follows it. */
  function speak() {
    const untouched = system.value === shown.system && questions.includes(question.value);
    if (untouched && textOf(chosen, language()) !== shown) load(chosen.id);
    PRESETS.forEach(({ name }, i) => setText(preset.options[i], name[language()]));
    setText(byId("try-lead"), chosen.watch[language()]);
    setAttribute(buttons[2], "aria-label", t("try.send-all-label", { n: questions.length }));
    setText(buttons[2], t("try.send-all", { n: questions.length }));
  }

  /** What the form would send now. */
  function draft(state) {
    const model = receiverOf(state)?.models[0] ?? null;
    return { model, system: system.value, question: question.value, cold: cold.checked, tools: chosen.tools ?? null, bare: chosen.bare ?? false };
  }

  function send(texts, turns = false) {
    const { question: _, ...form } = draft(getState());
    composer.start({ ...form, questions: texts, turns });
  }

  const drawOutcome = createOutcome();
  let drawn = [];
  function view(state, ui) {
    const server = receiverOf(state);
    const inputs = [server, state.requests, ui.run, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    speak();
    const ready = server !== null && server.models.length > 0;
    for (const button of buttons) {
      setAttribute(button, "disabled", !ready || isBusy(ui.run));
      setAttribute(button, "title", ready ? null : t("try.no-model"));
    }
    setHidden(stop, !isBusy(ui.run));
    setHidden(buttons[2], isBusy(ui.run));
    drawOutcome(state, ui.run, ui);
    return null;
  }

  return {
    view,
    draft,
    /** Puts a prompt into the form, as if it had been typed. */
    show(prompt) {
      system.value = prompt.system;
      question.value = prompt.question;
    },
  };
}

function createOutcome() {
  const root = byId("outcome");
  const runState = byId("run-state");
  const answer = byId("answer");
  const verdict = byId("verdict");
  const text = byId("verdict-text");
  const detail = byId("verdict-detail");
  const list = byId("run-list");
  let phase = "idle";
  let pending = false;
  let followUntil = 0;
  let behavior = "auto";
  const reveal = () => verdict.scrollIntoView({ block: "nearest", behavior });
  // The forecast above it and the causes in it come a little later, and would push it out of sight again.
  new ResizeObserver(() => performance.now() < followUntil && reveal()).observe(byId("try"));
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    window.addEventListener(kind, () => { followUntil = 0; }, { passive: true });
  }

  return (state, run, { still, tour }) => {
    setHidden(root, run.phase === "idle");
    if (run.phase === "idle") return;
    if (run.phase !== phase && (run.phase === "waiting" || run.phase === "done")) pending = true;
    phase = run.phase;
    setText(runState, progress(run));
    setText(answer, run.answer);
    const records = recordsOf(state, run);
    const record = shownRecord(state, run);
    const shown = sentence(run, record);
    setText(text, shown.text);
    setText(detail, shown.detail ?? "");
    setAttribute(verdict, "data-tone", shown.tone);
    setAttribute(verdict, "data-request", record?.id ?? null);
    setChildren(list, run.total > 1 ? records.map((row, i) => runRow(row, i, records)) : []);
    // The numbers come after the answer's end: what is brought into view is the sentence that they make.
    if (!pending || (run.phase === "done" && !record?.verdict)) return;
    // The tour's bar says the number, and must stay in sight itself.
    if (!tour.open) {
      behavior = still ? "auto" : "smooth";
      followUntil = performance.now() + FOLLOW_MS;
      reveal();
    }
    pending = false;
  };
}

const recordsOf = (state, run) => run.ids.map((id) => state.requests[id]?.record ?? null);

/** The record that the sentence is about: the last one's; while the next one runs, that of the one before it. Pure. */
export function shownRecord(state, run) {
  const records = recordsOf(state, run);
  const last = records.at(-1) ?? null;
  return isBusy(run) ? (records.findLast((each) => each?.verdict) ?? last) : last;
}

function progress(run) {
  const { index, total, question } = run;
  const phase = t(`try.phase.${run.phase}`);
  return total > 1 ? t("try.of", { index: index + 1, total, question, phase }) : t("try.only", { question, phase });
}

/** What to say of the last request of a run: {text, detail, tone}. The wording of a verdict is the dashboard's. */
export function sentence(run, record) {
  if (run.phase === "failed") return { text: t("try.failed"), detail: run.error, tone: "failed" };
  if (record?.verdict) {
    return { ...verdictWords(record.verdict), tone: warmth(record) ?? "none" };
  }
  if (run.phase === "stopped") return { text: t("try.stopped"), detail: null, tone: "none" };
  if (isBusy(run)) return { text: "…", detail: null, tone: "none" };
  return { text: t("try.no-numbers"), detail: null, tone: "none" };
}

function runRow(record, index, records) {
  const longest = Math.max(...records.map((other) => other?.ttft_ms ?? 0), 1);
  const bar = make("span", { class: "bar" });
  const known = record !== null && record.ttft_ms !== null;
  setStyle(bar, "width", `${known ? Math.max(1, (100 * record.ttft_ms) / longest) : 0}%`);
  const blocks = record?.prompt_blocks ? t("try.row-blocks", { reused: record.reused_blocks, n: record.prompt_blocks }) : null;
  return make(
    "li",
    { "data-warmth": record ? warmth(record) : null, title: blocks },
    make("span", {}, `${index + 1}.`),
    make("span", { "aria-hidden": "true" }, bar),
    make("span", { class: "ms" }, known ? duration(record.ttft_ms) : UNKNOWN),
  );
}
