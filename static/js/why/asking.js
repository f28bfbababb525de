/**
 * Asks about what is being typed: once it has been the same for a moment, and only about the newest. A newer question
 * aborts the one that is under way. No DOM, no network of its own.
 */

export const DELAY_MS = 250;

/** phase: idle, waiting, asking, done or failed. `key`: what `answer` is about; it stays while a newer one is asked for. */
export const UNASKED = { phase: "idle", key: null, answer: null, error: null };

/** `ask(question, signal)` resolves to the answer; `onChange(state)` hears of each change. */
export function createAsker({ ask, onChange, delay = DELAY_MS, timers = globalThis }) {
  let state = UNASKED;
  let wanted = null;
  let timer = 0;
  let abort = null;
  let taken = null;

  function update(fields) {
    state = { ...state, ...fields };
    onChange(state);
  }

  function drop() {
    timers.clearTimeout(timer);
    abort?.abort();
    abort = null;
  }

  async function send(key, question) {
    const mine = new AbortController();
    abort = mine;
    update({ phase: "asking" });
    try {
      const answer = await ask(question, mine.signal);
      if (abort === mine) update({ phase: "done", key, answer, error: null });
    } catch (error) {
      if (abort === mine) update({ phase: "failed", key, answer: null, error: error instanceof Error ? error.message : String(error) });
    }
  }

  function want(key, question) {
    drop();
    wanted = { key, question };
    update({ phase: "waiting" });
    timer = timers.setTimeout(() => send(key, question), delay);
  }

  return {
    get state() {
      return state;
    },
    want,
    /** The answer about `key` where it is there and as new as can be; each is given once, since what it is used for changes it. */
    take(key) {
      const { answer } = state;
      if (state.phase !== "done" || state.key !== key || answer === taken) return null;
      return (taken = answer);
    },
    /** Asks the same once more: the cache has changed. */
    again: () => wanted !== null && want(wanted.key, wanted.question),
    /** Nothing is to be known any more. */
    forget() {
      drop();
      wanted = null;
      if (state !== UNASKED) onChange((state = UNASKED));
    },
  };
}
