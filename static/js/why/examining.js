/** A list of prompts under examination: sends it, follows its progress, keeps the report. No DOM, no network of its own. */

/** phase: idle, working, done, failed or cancelled. `lines`: what was examined, as JSON lines. */
export const UNEXAMINED = { phase: "idle", stage: null, done: 0, total: 0, report: null, error: null, lines: "" };

/** `ask(lines, {signal, onLine})` is api.postLines; `onChange(state)` hears of each change. */
export function createExamining({ ask, onChange }) {
  let state = UNEXAMINED;
  let abort = null;

  const update = (fields) => onChange((state = { ...state, ...fields }));

  function follow(line) {
    if (line.report) update({ phase: "done", report: line.report });
    else if (line.error) update({ phase: "failed", error: line.error.message ?? String(line.error) });
    else update({ stage: line.stage, done: line.done, total: line.total });
  }

  return {
    get state() {
      return state;
    },
    async start(lines) {
      abort?.abort();
      const mine = (abort = new AbortController());
      update({ ...UNEXAMINED, phase: "working", lines });
      try {
        await ask(lines, { signal: mine.signal, onLine: (line) => abort === mine && follow(line) });
        if (abort === mine && state.phase === "working") update({ phase: "failed", error: null });
      } catch (error) {
        if (abort === mine) update(mine.signal.aborted ? { phase: "cancelled" } : { phase: "failed", error: error.message });
      }
    },
    cancel: () => abort?.abort(),
  };
}
