/** The card of the block that is pointed at: its text and who shares it. Fetched on demand, kept for a while. */

import { byId, make, setHidden } from "../dom.js";
import { age, basisName, count, plural, requestName, shortHash } from "../format.js";
import { holdersByHash, sharedBy } from "../selectors.js";
import { cacheKey } from "../store.js";

const MAX_CARDS = 500;
const DELAY_MS = 90;
const STATES = {
  reused: "reused from the cache",
  computed: "computed for this request",
  partial: "partial tail, never cached",
  decode: "filled by the answer",
  pending: "not known yet",
};

/** What a focus is about, as a key for its card. */
const keyOf = (focus) => (focus.hash !== null ? `${focus.server}|${focus.rank}|${focus.hash}` : `${focus.request}|${focus.index}`);

/** Fetches what the card needs, once a block. `load(focus)` resolves to the block; `onLoaded` asks for a redraw. */
export function createCardLoader({ load, onLoaded }) {
  const known = new Map();
  let timer = 0;
  return {
    get: (focus) => known.get(keyOf(focus)) ?? null,
    want(focus) {
      clearTimeout(timer);
      const key = focus === null ? null : keyOf(focus);
      if (key === null || known.has(key)) return;
      timer = setTimeout(async () => {
        let answer;
        try {
          answer = { block: await load(focus), error: null };
        } catch (error) {
          answer = { block: null, error: error.message };
        }
        known.set(key, answer);
        if (known.size > MAX_CARDS) known.delete(known.keys().next().value);
        onLoaded();
      }, DELAY_MS);
    },
  };
}

export function createCard({ loader }) {
  const card = byId("block-card");
  let drawn = [];

  return (state, ui) => {
    const { focus } = ui;
    const answer = focus === null ? null : loader.get(focus);
    const inputs = [focus, answer, state.requests, state.caches];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    setHidden(card, focus === null);
    if (focus === null) return null;
    card.replaceChildren(...content(state, focus, answer));
    moveTo(card, focus);
    return null;
  };
}

function content(state, focus, answer) {
  const table = state.requests[focus.request]?.table ?? null;
  const resident = state.caches[cacheKey(focus.server, focus.rank)]?.blocks.get(focus.hash) ?? null;
  const block = answer?.block ?? null;
  const position = focus.index ?? resident?.depth ?? block?.depth ?? null;
  const title = position === null ? "A block" : `Block ${count(position + 1)}`;
  const state_ = focus.state ? `, ${STATES[focus.state] ?? focus.state}` : "";
  return [make("h3", {}, title + state_), blockText(answer), facts(state, { focus, table, resident, block })];
}

function blockText(answer) {
  const quiet = (text) => make("p", { class: "block-text", "data-quiet": true }, text);
  if (answer === null) return quiet("reading its text …");
  if (answer.error !== null) return quiet(answer.error);
  if (answer.block.text_hidden) return quiet("The text of this request isn't shown.");
  if (answer.block.text === null || answer.block.text === undefined) return quiet("Its text isn't known.");
  return make("p", { class: "block-text", dir: "auto" }, answer.block.text);
}

function facts(state, { focus, table, resident, block }) {
  const list = make("dl");
  const fact = (name, value) => list.append(make("dt", {}, name), make("dd", {}, value));
  const held = block?.tokens;
  const tokens = Array.isArray(held) ? held.length : (held ?? (focus.index === null ? resident?.tokens : table?.tokens[focus.index]));
  const hash = focus.hash ?? block?.hash ?? null;
  fact("tokens", count(tokens ?? null));
  if (hash !== null) fact("hash", shortHash(hash));
  if (hash !== null) fact("shared by", sharers(state, hash, resident));
  if (resident !== null) {
    fact("reused", plural(resident.reuses, "time"));
    fact("stored", `${age(resident.stored_ms, state.at_ms)}${resident.copies > 1 ? `, ${count(resident.copies)} copies` : ""}`);
  } else if (hash !== null) fact("in the cache", "no longer, or not known");
  if (table?.basis) fact("known from", basisName(table.basis));
  return list;
}

function sharers(state, hash, resident) {
  const holders = holdersByHash(state);
  const ids = holders.get(hash) ?? [];
  const total = resident === null ? ids.length : sharedBy(resident, holders);
  if (total === 0) return "no request kept here";
  const names = ids.slice(0, 6).map(requestName).join(" ");
  return `${plural(total, "request")}${ids.length > 0 ? `: ${names}${total > 6 ? " …" : ""}` : ""}`;
}

function moveTo(card, { x, y }) {
  const { width, height } = card.getBoundingClientRect();
  // Beside the pointer, so that the same block in the rows below stays in sight.
  const beside = x + 26 + width > window.innerWidth - 12 ? x - 26 - width : x + 26;
  const left = Math.min(Math.max(12, beside), window.innerWidth - width - 12);
  const below = y + 14;
  const top = below + height > window.innerHeight - 8 ? Math.max(8, y - height - 18) : below;
  card.style.left = `${left}px`;
  card.style.top = `${top}px`;
}

