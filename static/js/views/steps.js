/** One request step by step: its blocks, what the engine does with them now, and the numbers of that step. */

import { byId, make, setAttribute, setChildren, setHidden, setText } from "../dom.js";
import { basisName, count, duration, requestName, shortHash } from "../format.js";
import { firstTokenTime, holdersByHash, isRunning } from "../selectors.js";
import { anatomyOf, cellsOf, computedBy, phaseOf, stepsOf } from "../steps.js";
import { t, verdictWords } from "../words.js";

const STEP_MS = 1_400;
const CLOSED = { request: null, steps: [], cells: [], at: 0, playing: false, since: 0 };

const blocksWords = ({ from, to }) => (to - from === 1 ? t("steps.block", { n: from + 1 }) : t("steps.blocks", { first: from + 1, last: to }));

/** What a step says, as a sentence. Pure. */
export function sayStep(request, step) {
  const { record } = request;
  const { size, full, tail, blocks } = anatomyOf(request);
  const tokens = (n) => t("unit.tokens", { n });
  const about = step.from === null ? "" : blocksWords(step);
  switch (step.phase) {
    case "cut":
      return t("steps.say.cut", { tokens: tokens(record.prompt_tokens), size, full, tail: tokens(tail) });
    case "hash":
      return t(step.from === 0 ? "steps.say.hash-first" : "steps.say.hash", { blocks: about });
    case "skip":
      return t("steps.say.skip", { why: verdictWords(record.verdict).text });
    case "tail":
      return t("steps.say.tail", { tail: tokens(tail) });
    case "compute":
      return t("steps.say.compute", { blocks: about, tokens: tokens(blocks.slice(step.from, step.to).reduce((sum, block) => sum + block.tokens, 0)) });
    case "answer": {
      const { all } = computedBy(request, [], 0);
      return t("steps.say.answer", { ttft: duration(firstTokenTime(record).ms), computed: tokens(all), reused: tokens(record.prompt_tokens - all) });
    }
    default:
      return t(`steps.say.${step.phase}`, { blocks: about });
  }
}

/** The numbers of a step: [name, value] pairs. Pure. */
export function factsOfStep(request, steps, at, holders) {
  const { record } = request;
  const { blocks, size, reusable, reused, answer } = anatomyOf(request);
  const { phase, from, to } = steps[at];
  const { done, all } = computedBy(request, steps, at);
  const facts = [];
  if (from !== null) {
    const first = from * size + 1;
    const last = from * size + blocks.slice(from, to).reduce((sum, block) => sum + block.tokens, 0);
    facts.push([t("steps.tokens"), t("steps.tokens-value", { first, last, all: record.prompt_tokens })]);
  }
  if (phase === "hash" && to - from === 1) {
    const parent = from === 0 ? "∅" : shortHash(blocks[from - 1].hash);
    facts.push([t("steps.hash"), t("steps.hash-value", { parent, hash: shortHash(blocks[from].hash) })]);
  }
  if ((phase === "hit" || phase === "touch") && to - from === 1) facts.push([t("steps.holders"), t("unit.requests", { n: holders.get(blocks[from].hash)?.length ?? 0 })]);
  if (phase === "cut" || phase === "miss" || phase === "cap") facts.push([t("steps.can-reuse"), t("unit.blocks", { n: reusable })]);
  if (phase === "miss" || phase === "cap" || phase === "answer") facts.push([t("steps.was"), t("unit.blocks", { n: reused })]);
  if (phase === "compute" || phase === "answer") facts.push([t("steps.computed"), t("steps.of", { n: done, all })]);
  if (phase === "answer") {
    facts.push([t("steps.queue"), duration(record.queue_ms)], [t("steps.prefill"), duration(record.ttft_parts?.prefill_ms ?? null)]);
    facts.push([t("steps.decoded"), count(answer)]);
  }
  return facts;
}

/** open(id): shows that request, or the newest that has ended and whose blocks are known. setFocus lights a block in the pictures. */
export function createSteps({ getState, setFocus, invalidate }) {
  const dialog = byId("steps");
  const speed = byId("steps-speed");
  const list = byId("steps-cells");
  const opens = byId("steps-open");
  let shown = CLOSED;
  let drawn = [];
  let opener = null;

  function set(fields) {
    shown = { ...shown, ...fields };
    light();
    invalidate();
  }

  /** The block of the step, lit wherever it stands on the page, without its card. */
  function light() {
    const { steps, at, request } = shown;
    const { from, to } = steps[at];
    const { id, server, rank } = request.record;
    const hash = from === null ? null : request.table.hash[from];
    if (from === null || to - from > 1) setFocus(null);
    else setFocus({ hash, request: id, index: from, server, rank, state: request.table.state[from], quiet: true, x: 0, y: 0 });
  }

  function open(id = null) {
    const { requests, requestOrder } = getState();
    const kept = requestOrder.map((each) => requests[each]);
    // Of one that has ended all is known.
    const ended = kept.filter(({ record }) => !isRunning(record));
    const request = [requests[id], ...ended, ...kept].find((each) => each !== undefined && stepsOf(each).length > 0);
    if (request === undefined) return;
    const steps = stepsOf(request);
    if (!dialog.open) {
      opener = document.activeElement;
      dialog.show();
    }
    set({ request, steps, cells: cellsOf(steps), at: 0, playing: false });
    byId("steps-next").focus({ preventScroll: true });
  }

  function close() {
    dialog.close();
    shown = CLOSED;
    setFocus(null);
    opener?.focus?.({ preventScroll: true });
  }

  const go = (at) => set({ at: Math.min(shown.steps.length - 1, Math.max(0, at)), playing: false });
  const play = () => set({ playing: !shown.playing, since: performance.now(), at: shown.at === shown.steps.length - 1 ? 0 : shown.at });

  byId("steps-close").addEventListener("click", close);
  byId("steps-back").addEventListener("click", () => go(shown.at - 1));
  byId("steps-next").addEventListener("click", () => go(shown.at + 1));
  byId("steps-play").addEventListener("click", play);
  opens.addEventListener("click", () => open());
  dialog.addEventListener("keydown", (event) => {
    const within = event.target.closest("select") !== null;
    const moves = { ArrowLeft: shown.at - 1, ArrowRight: shown.at + 1, Home: 0, End: shown.steps.length - 1 };
    if (event.key === "Escape") close();
    else if (within || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key in moves) go(moves[event.key]);
    else if (event.key === " ") play();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  function drawCells() {
    const { steps, at, cells, request } = shown;
    const { from, to } = steps[at];
    setChildren(
      list,
      cells.map((cell, i) => {
        const node = list.children[i] ?? make("li", {}, make("b"), make("span"));
        const phase = phaseOf(steps, at, cell.from);
        const now = from !== null && from <= cell.from && cell.to <= to;
        const many = cell.to - cell.from;
        setAttribute(node, "data-phase", phase);
        setAttribute(node, "data-now", now);
        setAttribute(node, "data-tail", anatomyOf(request).full <= cell.from);
        setAttribute(node, "data-many", many > 1);
        setText(node.firstChild, many > 1 ? `×${count(many)}` : count(cell.from + 1));
        setText(node.lastChild, phase === null ? "" : t(`steps.phase.${phase}`));
        return node;
      }),
    );
    list.querySelector("[data-now]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  return {
    open,
    view(state, ui, now) {
      setHidden(opens, state.requestOrder.length === 0);
      if (!dialog.open) return null;
      const pace = STEP_MS / Number(speed.value);
      if (shown.playing && now - shown.since >= pace) {
        const at = shown.at + 1;
        shown = { ...shown, at, since: now, playing: at < shown.steps.length - 1 };
        light();
      }
      // What is known of the request may still grow, but the steps stay those that it was opened with.
      const inputs = [shown, ui.paint, state.requests];
      if (inputs.some((input, i) => input !== drawn[i])) {
        drawn = inputs;
        const { request, steps, at } = shown;
        setText(byId("steps-title"), t("steps.title", { name: requestName(request.record.id) }));
        setText(byId("steps-count"), t("steps.count", { n: at + 1, all: steps.length }));
        setText(byId("steps-phase"), t(`steps.phase.${steps[at].phase}`));
        setText(byId("steps-said"), sayStep(request, steps[at]));
        setText(byId("steps-honest"), t("steps.honest", { basis: basisName(request.table.basis) }));
        setText(byId("steps-play"), t(shown.playing ? "steps.pause" : "steps.play"));
        const facts = factsOfStep(request, steps, at, holdersByHash(state));
        setChildren(byId("steps-facts"), facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
        drawCells();
      }
      return shown.playing ? Math.max(16, shown.since + pace - now) : null;
    },
  };
}
