/** A request beside the nearest prompt, as rows that the microscope draws. Pure: reads GET api/requests/{id}/comparison. */

/** Nothing is looked at. phase: idle, asking, done or failed; `start`: the token asked for, null for the difference. */
export const CLOSED = { id: null, phase: "idle", start: null, answer: null, error: null };
/** Tokens that are turned over at once; the server gives at most 1,024. */
export const PAGE_TOKENS = 192;
const LEAD_BLOCKS = 2;

const MARKS = { " ": "·", "\n": "↵", "\r": "␍", "\t": "⇥", "\u00a0": "⍽", "\u200b": "⟨ZWSP⟩", "\u200d": "⟨ZWJ⟩", "\ufeff": "⟨BOM⟩" };

/**
 * A token's text so that each of its characters can be seen: spaces at its ends, line ends and what has no shape of its own
 * become marks. Within it single spaces and joiners of glyphs stay.
 */
export function visible(text) {
  if (text === "") return "∅";
  const points = Array.from(text);
  const shapeless = points.every((point) => point in MARKS);
  return points
    .map((point, i) => {
      if (!(point in MARKS)) return point;
      const edge = i === 0 || i === points.length - 1;
      const joins = point === "\u200d" && !edge;
      return shapeless || (edge && !joins) || "\n\r\t".includes(point) ? MARKS[point] : point;
    })
    .join("");
}

/** Where the window that shows token `at` best begins: whole blocks, a few before it. */
export function windowStart(at, size) {
  const unit = size || 16;
  return Math.max(0, (Math.floor(at / unit) - LEAD_BLOCKS) * unit);
}

/** The first token that is drawn of a window: a block of which only the end is in it is left out, but for the difference. */
export function firstShown({ here, block_size: size, common_tokens: common }) {
  const border = size ? Math.ceil(here.start / size) * size : here.start;
  return border <= common && border < here.end ? border : here.start;
}

/** "common" (the same on both sides), "first" (the first that differs) or "after". */
function placeOf(group, common) {
  if (group.start + group.count <= common) return "common";
  return group.start <= common ? "first" : "after";
}

/**
 * One side's window by blocks: {block, first, groups: [{start, count, text, cells, place, kind}]} in order. `text` is null
 * where texts are hidden: a group is then a single token without words. `kind`: reused or computed, where `cached` tokens
 * are known to have been reused; null on the other prompt's side. A glyph over a border stands in the block it begins in.
 * Groups before token `from` are left out.
 */
export function rowsOf(side, { common, size, cached = null, from = 0 }) {
  const groups = side.groups ?? Array.from({ length: side.end - side.start }, (_, i) => ({ start: side.start + i, count: 1, text: null, cells: [] }));
  const rows = [];
  for (const group of groups) {
    if (group.start + group.count <= from) continue;
    const block = size ? Math.floor(group.start / size) : 0;
    if (rows.at(-1)?.block !== block) rows.push({ block, first: group.start, groups: [] });
    const kind = cached === null ? null : group.start < cached ? "reused" : "computed";
    rows.at(-1).groups.push({ ...group, place: placeOf(group, common), kind });
  }
  return rows;
}

/** The whole prompt as runs of tokens: {kind, tokens}, reused first, then computed. */
export function mapOf({ prompt_tokens: tokens, cached_tokens: cached }) {
  if (cached === null || cached > tokens) return [{ kind: "unknown", tokens }];
  return [{ kind: "reused", tokens: cached }, { kind: "computed", tokens: tokens - cached }].filter((run) => run.tokens > 0);
}

/** How the two stand to each other: nothing (no other is known), whole (all of it stood there), ends (there it ended) or differs. */
export function relation({ nearest, first_difference: difference, common_tokens: common }) {
  if (nearest === null) return "nothing";
  if (difference === null) return "whole";
  return common >= nearest.tokens ? "ends" : "differs";
}
