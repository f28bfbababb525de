/**
 * What keeps two requests from sharing, and whether writing them differently helps: asks for the remedy, sends both ways,
 * and keeps the ids under which the dashboard measures them. No DOM, no network of its own.
 */

import { measured } from "./pairs.js";

/** phase: idle, asking, none, found, sending, sent or failed. `ids`: by name of why/pairs.js `measured`. */
export const UNFIXED = { phase: "idle", id: null, before: null, after: null, finding: null, ids: {}, running: null, error: null };

/**
 * `ask(body, signal)` resolves to POST api/remedy's answer, `send` is api.streamChat, `salt()` gives a fresh cache salt,
 * `onChange(state)` hears of each change.
 */
export function createFixing({ ask, send, salt, onChange }) {
  let state = UNFIXED;
  let abort = null;

  function update(fields) {
    state = { ...state, ...fields };
    onChange(state);
  }

  function begin(fields) {
    abort?.abort();
    abort = new AbortController();
    update(fields);
    return abort;
  }

  return {
    get state() {
      return state;
    },
    /** Looks for what keeps `after` from sharing with `before`; `id`: of the request that it is asked for. */
    async look(id, before, after) {
      const mine = begin({ ...UNFIXED, phase: "asking", id, before, after });
      try {
        const { breakers } = await ask({ requests: [before, after] }, mine.signal);
        if (abort === mine) update({ phase: breakers.length > 0 ? "found" : "none", finding: breakers[0] ?? null });
      } catch (error) {
        if (abort === mine) update({ phase: "failed", error: error.message });
      }
    },
    /** Takes a pair whose breaker is known already. */
    take(id, before, after, finding) {
      begin({ ...UNFIXED, phase: "found", id, before, after, finding });
    },
    /** Sends both requests as they are, then both rewritten, one after the other. */
    async resend(model) {
      const { before, after, finding } = state;
      const mine = begin({ phase: "sending", ids: {}, error: null });
      try {
        for (const { name, body } of measured({ before, after, finding, model, salt })) {
          update({ running: name });
          await send({
            body,
            headers: { "X-PrefixScope-Origin": "page" },
            signal: mine.signal,
            onStart: (id) => update({ ids: { ...state.ids, [name]: id } }),
            onText: () => {},
          });
          if (abort !== mine) return;
        }
        update({ phase: "sent", running: null });
      } catch (error) {
        if (abort === mine) update({ phase: mine.signal.aborted ? "found" : "failed", running: null, error: mine.signal.aborted ? null : error.message });
      }
    },
    stop: () => abort?.abort(),
    forget() {
      abort?.abort();
      abort = null;
      if (state !== UNFIXED) onChange((state = UNFIXED));
    },
  };
}
