/** The card of the block that is pointed at: its text and who shares it. Fetched on demand, kept for a while. */

import { byId, make, setHidden } from "../dom.js";
import { age, basisName, count, requestName, shortHash } from "../format.js";
import { holdersByHash, sharedBy } from "../selectors.js";
import { cacheKey } from "../store.js";
import { hasWords, t } from "../words.js";

const MAX_CARDS = 500;
const DELAY_MS = 90;

/** What a focus is about, as a key for its card. */
const keyOf = (focus) => (focus.hash !== null ? `${focus.server}|${focus.rank}|${focus.hash}` : `${focus.request}|${focus.index}`);

/** Fetches what the card needs, once a block. `load(focus)` resolves to the block; `onLoaded` asks for a redraw. */
export function createCardLoader({ load, onLoaded }) {
  const known = new Map();
  let timer = 0;
  let round = 0;
  return {
    get: (focus) => known.get(keyOf(focus)) ?? null,
    /** Lets go of all that is known, and of what is on its way. */
    forget() {
      known.clear();
      round += 1;
    },
    want(focus) {
      clearTimeout(timer);
      const key = focus === null ? null : keyOf(focus);
      if (key === null || known.has(key)) return;
      const asked = round;
      timer = setTimeout(async () => {
        let answer;
        try {
          answer = { block: await load(focus), error: null };
        } catch (error) {
          answer = { block: null, error: error.message };
        }
        if (asked !== round) return;
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
    const inputs = [focus, answer, state.requests, state.caches, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const hidden = focus === null || focus.quiet === true;
    setHidden(card, hidden);
    if (hidden) return null;
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
  const title = position === null ? t("card.a-block") : t("card.block", { n: position + 1 });
  return [make("h3", {}, focus.state ? t("card.titled", { block: title, state: stateWords(focus.state) }) : title), blockText(answer), facts(state, { focus, table, resident, block })];
}

const stateWords = (state) => (hasWords(`card.${state}`) ? t(`card.${state}`) : state);

function blockText(answer) {
  const quiet = (text) => make("p", { class: "block-text", "data-quiet": true }, text);
  if (answer === null) return quiet(t("card.reading"));
  if (answer.error !== null) return quiet(answer.error);
  if (answer.block.text_hidden) return quiet(t("card.hidden"));
  if (answer.block.text === null || answer.block.text === undefined) return quiet(t("card.unknown"));
  return make("p", { class: "block-text", dir: "auto" }, answer.block.text);
}

function facts(state, { focus, table, resident, block }) {
  const list = make("dl");
  const fact = (name, value) => list.append(make("dt", {}, name), make("dd", {}, value));
  const held = block?.tokens;
  const tokens = Array.isArray(held) ? held.length : (held ?? (focus.index === null ? resident?.tokens : table?.tokens[focus.index]));
  const hash = focus.hash ?? block?.hash ?? null;
  fact(t("card.tokens"), count(tokens ?? null));
  if (hash !== null) fact(t("card.hash"), shortHash(hash));
  if (hash !== null) fact(t("card.shared-by"), sharers(state, hash, resident));
  if (resident !== null) {
    fact(t("card.times"), t("unit.times", { n: resident.reuses }));
    const stored = age(resident.stored_ms, state.at_ms);
    const copies = t("unit.copies", { n: resident.copies });
    fact(t("card.stored"), resident.copies > 1 ? t("card.stored-copies", { age: stored, copies }) : stored);
  } else if (hash !== null) fact(t("card.in-cache"), t("card.no-longer"));
  if (table?.basis) fact(t("card.known-from"), basisName(table.basis));
  return list;
}

function sharers(state, hash, resident) {
  const holders = holdersByHash(state);
  const ids = holders.get(hash) ?? [];
  const total = resident === null ? ids.length : sharedBy(resident, holders);
  if (total === 0) return t("card.no-sharers");
  const requests = t("unit.requests", { n: total });
  const names = `${ids.slice(0, 6).map(requestName).join(" ")}${total > 6 ? " …" : ""}`;
  return ids.length > 0 ? t("card.sharers", { requests, names }) : requests;
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

