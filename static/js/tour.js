/**
 * The guided tour: six steps, each with real requests behind it, told by a caption and one number. No DOM and no network
 * of its own; its state is plain data, handed to `onChange` after each change.
 */

import { buildRequest, changeEnd, changeStart, isBusy } from "./composer.js";
import { presetById, textOf } from "./presets.js";
import { residentBlocks } from "./selectors.js";

export const STEPS = ["cold", "warm", "front", "end", "out", "back"];
/** What other prompts it takes to push one out is bounded: so many, of so many digits each. */
const MAX_FILLERS = 100;
const FILLER_DIGITS = 8_000;
/** Left of the model's length for the template and the answer. */
const FILLER_SPARE = 400;

/**
 * done: how many steps have run; `step`: the one that is shown, from 0. ids: by step, the dashboard's ids of its
 * requests. phase: idle, running or failed, of the step that runs last; `real`: whether "out" really fills the pool.
 */
export const CLOSED = { open: false, step: 0, done: 0, ids: [], phase: "idle", error: null, real: true };

/** The tour's prompt: a number of its own at the very front, so that no run finds another's blocks. */
export function promptOf(number, language) {
  const { system, questions } = textOf(presetById("support"), language);
  return { system: `${language === "zh" ? "窗口" : "Desk"} ${number}. ${system}`, question: questions[0] };
}

/** What a step sends through "Try it": {system, questions, salt}. */
export function requestsOf(step, { system, question }) {
  if (step === "front") return { system: changeStart(system), questions: [question] };
  if (step === "end") return { system, questions: [changeEnd(question)] };
  return { system, questions: step === "back" ? [question, question] : [question], cold: step === "out" };
}

/**
 * The one number of a step, from the records of the tour's requests: {value, kind, ...} with kind "ms" (`before`: what
 * it is measured against), "blocks" (`of`) or "tokens"; null where it isn't known. Pure.
 */
export function numberOf(step, ids, recordOf, { real = true } = {}) {
  const records = (of) => (ids[STEPS.indexOf(of)] ?? []).map(recordOf);
  const mine = records(step);
  const last = mine.at(-1) ?? null;
  const ttft = (record) => record?.ttft_ms ?? null;
  if (step === "cold") return { kind: "ms", value: ttft(last), before: null };
  if (step === "warm") return { kind: "ms", value: ttft(last), before: ttft(records("cold").at(-1)) };
  if (step === "back") return { kind: "ms", value: mine.length > 1 ? ttft(last) : null, before: ttft(mine[0]) };
  if (step === "out" && real) {
    const tokens = mine.map((record) => record?.prompt_tokens ?? null);
    return { kind: "tokens", value: tokens.some((n) => n !== null) ? tokens.reduce((sum, n) => sum + (n ?? 0), 0) : null };
  }
  return { kind: "blocks", value: last?.reused_blocks ?? null, of: last?.prompt_blocks ?? null };
}

/** `length` digits, which no tokenizer makes more than `length` tokens of. */
export function digits(length, crypto = globalThis.crypto) {
  const bytes = new Uint8Array(length);
  // No more than 65,536 bytes are given at once.
  for (let from = 0; from < length; from += 65_536) crypto.getRandomValues(bytes.subarray(from, from + 65_536));
  return Array.from(bytes, (byte) => byte % 10).join("");
}

/**
 * composer: of "Try it"; send: api.streamChat; show(prompt): puts a prompt into the form; getState; language();
 * onStart(): the tour begins. Answers {next, back, reset, close, tour}.
 */
export function createTour({ composer, send, show, getState, language, onChange, onStart, number = () => 1000 + Math.floor(Math.random() * 9000) }) {
  let tour = CLOSED;
  let prompt = null;
  let abort = new AbortController();

  function update(fields) {
    tour = { ...tour, ...fields };
    onChange(tour);
  }

  function begin() {
    prompt = promptOf(number(), language());
    onStart();
    update({ ...CLOSED, open: true });
    return run(0);
  }

  async function next() {
    if (!tour.open) return begin();
    if (tour.phase === "running") return undefined;
    if (tour.phase === "failed") return run(tour.step);
    if (tour.step + 1 < tour.done) return update({ step: tour.step + 1 });
    return tour.done < STEPS.length ? run(tour.done) : undefined;
  }

  async function run(step) {
    if (isBusy(composer.run)) return;
    const mine = new AbortController();
    abort = mine;
    const ids = tour.ids.slice(0, step);
    update({ step, phase: "running", error: null, ids });
    try {
      const fills = STEPS[step] === "out" && getState().hello?.demo === true && firstBlock() !== null;
      if (STEPS[step] === "out") update({ real: fills });
      if (fills) await pushOut(step, mine.signal);
      else await ask(step);
      if (!mine.signal.aborted) update({ phase: "idle", done: Math.max(tour.done, step + 1) });
    } catch (error) {
      if (!mine.signal.aborted) update({ phase: "failed", error: error.message });
    }
  }

  async function ask(step) {
    const { cold = false, ...wanted } = requestsOf(STEPS[step], prompt);
    show({ system: wanted.system, question: wanted.questions[0] });
    await composer.start({ model: modelOf(getState()), ...wanted, cold });
    const { phase, error, ids } = composer.run;
    addIds(step, ids);
    if (phase !== "done") throw new Error(error ?? phase);
  }

  /** The hash of the tour prompt's first block, which leaves the cache last. */
  function firstBlock() {
    const [id] = tour.ids[STEPS.indexOf("end")] ?? [];
    return getState().requests[id]?.table?.hash[0] ?? null;
  }

  async function pushOut(step, signal) {
    const hash = firstBlock();
    const state = getState();
    const length = Math.min(FILLER_DIGITS, (serverOf(state)?.max_model_len ?? FILLER_DIGITS) - FILLER_SPARE);
    for (let i = 0; i < MAX_FILLERS && residentBlocks(getState()).has(hash); i++) {
      const request = buildRequest({ model: modelOf(state), system: "", question: digits(length), bare: true });
      request.body.max_tokens = 1;
      await send({ ...request, signal, onStart: (id) => addIds(step, id === null ? [] : [id]), onText() {} });
    }
  }

  function addIds(step, ids) {
    update({ ids: Object.assign([...tour.ids], { [step]: [...(tour.ids[step] ?? []), ...ids] }) });
  }

  function close() {
    abort.abort();
    if (tour.phase === "running") composer.stop();
    update(CLOSED);
  }

  return {
    next,
    back: () => tour.open && tour.step > 0 && tour.phase !== "running" && update({ step: tour.step - 1, phase: "idle" }),
    async reset() {
      close();
      await begin();
    },
    close,
    get tour() {
      return tour;
    },
  };
}

const serverOf = (state) => state.servers[state.serverOrder[0]] ?? null;
const modelOf = (state) => serverOf(state)?.models[0] ?? null;
