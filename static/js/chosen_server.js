/**
 * Of several servers the one that the page shows. The state is brought to it once: the chosen server stands first, and
 * requests, effects and gaps are those of it, so that every view and figure speaks of one server. Pure.
 */

/** Parts by which views see that something changed: each is another object for another server. */
const SEEN = ["servers", "requests", "caches", "metrics", "rates"];

/**
 * of(state, id) is the state with the server `id` chosen, the first where there is none of that id; `choices` are all
 * servers in their own order. The same object for the same state, and its parts for as long as they are the same.
 */
export function createChoice() {
  const states = new WeakMap();
  const lists = new WeakMap();

  function once(kept, key, id, make) {
    const found = kept.get(key);
    if (found?.id === id) return found.made;
    const made = make();
    kept.set(key, { id, made });
    return made;
  }

  function chosen(state, id) {
    const order = once(lists, state.serverOrder, id, () => [id, ...state.serverOrder.filter((each) => each !== id)]);
    const requests = once(lists, state.requestOrder, id, () =>
      state.requestOrder.filter((request) => state.requests[request].record.server === id),
    );
    const effects = once(lists, state.effects, id, () => state.effects.filter(({ cache }) => isOf(cache, id)));
    const gaps = once(lists, state.gaps, id, () =>
      Object.fromEntries(Object.entries(state.gaps).filter(([cache]) => isOf(cache, id))),
    );
    const parts = SEEN.map((name) => [name, once(lists, state[name], id, () => ({ ...state[name] }))]);
    const own = { choices: state.serverOrder, serverOrder: order, requestOrder: requests, effects, gaps };
    return { ...state, ...Object.fromEntries(parts), ...own };
  }

  return {
    of(state, id) {
      if (state.serverOrder.length < 2) return state;
      const known = state.serverOrder.includes(id) ? id : state.serverOrder[0];
      return once(states, state, known, () => chosen(state, known));
    },
  };
}

/** Keys of caches are server|rank. */
const isOf = (cache, server) => cache.slice(0, cache.lastIndexOf("|")) === server;

/** All servers in their own order. */
export const choicesOf = (state) => state.choices ?? state.serverOrder;

/** The server that requests to the dashboard go to, whichever is shown; null where there is none. */
export const receiverOf = (state) => state.servers[choicesOf(state)[0]] ?? null;
