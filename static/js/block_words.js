/** The words that blocks begin with, asked for by hash, few at a time, each once. What isn't shown stays unknown. */

import { wordsOf } from "./format.js";

const MAX_KEPT = 400;
const MAX_ASKING = 2;
const MAX_WAITING = 64;

/** `load(block)` resolves to {text, ...}; `onLoaded` asks for a redraw. */
export function createBlockWords({ load, onLoaded }) {
  const known = new Map();
  const waiting = new Map();
  let asking = 0;
  let version = 0;
  let round = 0;

  async function ask() {
    if (asking >= MAX_ASKING || waiting.size === 0) return;
    const [key, block] = waiting.entries().next().value;
    waiting.delete(key);
    asking += 1;
    const asked = round;
    let text = null;
    try {
      text = (await load(block)).text ?? null;
    } catch {
      text = null; // A block that just left has no words; the tree says the rest.
    }
    asking -= 1;
    if (asked === round) known.set(key, text === null ? null : wordsOf(text));
    if (known.size > MAX_KEPT) known.delete(known.keys().next().value);
    version += 1;
    onLoaded();
    ask();
  }

  return {
    version: () => version,
    /** Lets go of all words, and of those on their way. */
    forget() {
      known.clear();
      round += 1;
      version += 1;
    },
    /** The first words of {hash, server, rank}, or null while they aren't known. */
    get(block) {
      const key = `${block.server}|${block.rank}|${block.hash}`;
      if (known.has(key)) return known.get(key);
      if (!waiting.has(key) && waiting.size < MAX_WAITING) {
        waiting.set(key, block);
        ask();
      }
      return null;
    },
  };
}
