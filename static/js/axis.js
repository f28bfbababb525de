/**
 * The one axis of the request lanes: position in the prompt, in blocks. Pure.
 * Where lanes are longer than the room, runs in which no lane changes are folded, the longest first; what still
 * doesn't fit is drawn with narrower cells. All lanes share the result, so that a column means the same in each.
 */

export const CELL_MAX = 15;
/** Cells narrower than this make folds worth while; folding goes on until cells are CELL_GOOD wide. */
const CELL_NARROW = 6.5;
const CELL_GOOD = 9;
const FOLD_MAX = 108;
const FOLD_MIN = 44;
/** Shorter runs aren't worth a fold. */
const FOLD_LEAST = 20;
/** Cells left standing at either end of a fold, so that its edges are seen. */
const KEEP = 2;
/** The lanes' cells keep at least so much of their width when the tree shares their axis. */
const TREE_SHARE = 0.75;

/**
 * Segments [{kind: "cells" | "fold", from, to}] (`to` exclusive) for lanes of block states, and the widths of a cell and
 * of a fold.
 * lanes: arrays of states; width: room in pixels; fold: false draws everything as cells. tree: {edges, length} of the
 * prefix tree that shares the axis, or null: its edges stay out of folds and its length finds room, but the lanes
 * don't get much narrower for it; what doesn't fit then lies right of the axis' end or in a fold.
 */
export function layoutAxis(lanes, width, { fold = true, tree = null } = {}) {
  const length = lanes.reduce((longest, lane) => Math.max(longest, lane.length), 0);
  const alone = layoutOne(lanes, width, { fold, length, edges: [] });
  if (tree === null || tree.length === 0) return alone;
  const whole = layoutOne(lanes, width, { fold, length: Math.max(length, tree.length), edges: tree.edges });
  if (length === 0 || whole.cell >= Math.min(CELL_GOOD, alone.cell)) return whole;
  const cut = layoutOne(lanes, width, { fold, length, edges: tree.edges.filter((edge) => edge < length) });
  return [whole, cut].find((axis) => axis.cell >= TREE_SHARE * alone.cell) ?? alone;
}

function layoutOne(lanes, width, { fold, length, edges }) {
  if (length === 0 || width <= 0) return { length, cell: CELL_MAX, fold: FOLD_MAX, segments: [] };
  const folds = [];
  const foldWidth = () => Math.max(FOLD_MIN, Math.min(FOLD_MAX, (0.38 * width) / Math.max(1, folds.length)));
  const cellNow = () => cellWidth(length, folds, width, foldWidth());
  if (fold && cellNow() < CELL_NARROW) {
    for (const run of evenRuns(lanes, length, edges)) {
      folds.push(run);
      if (cellNow() >= CELL_GOOD) break;
    }
  }
  unfoldSpare(folds, length, width, foldWidth());
  folds.sort((a, b) => a.from - b.from);
  const cell = Math.min(CELL_MAX, cellWidth(length, folds, width, foldWidth()));
  return { length, cell, fold: foldWidth(), segments: segmentsOf(length, folds) };
}

/** The width left for each cell that isn't folded. */
function cellWidth(length, folds, width, foldWidth) {
  const folded = folds.reduce((sum, run) => sum + run.to - run.from, 0);
  return (width - folds.length * foldWidth) / Math.max(1, length - folded);
}

/** Gives room that is left over back to the longest fold, cell by cell from its left edge. */
function unfoldSpare(folds, length, width, foldWidth) {
  if (folds.length === 0) return;
  const folded = folds.reduce((sum, run) => sum + run.to - run.from, 0);
  const spare = Math.floor((width - folds.length * foldWidth) / (CELL_GOOD + 1)) - (length - folded);
  const [longest] = folds;
  if (spare > 0) longest.from += Math.min(spare, longest.to - longest.from - 2);
}

/** Runs worth folding, longest first: between `from` and `to` no lane changes its state or ends, and none of `edges` lies. */
function evenRuns(lanes, length, edges) {
  const breaks = new Set([0, length, ...edges]);
  for (const lane of lanes) {
    for (let i = 1; i <= lane.length; i++) if (lane[i] !== lane[i - 1]) breaks.add(i);
  }
  const sorted = [...breaks].sort((a, b) => a - b);
  const runs = [];
  for (let i = 1; i < sorted.length; i++) {
    const from = sorted[i - 1] + KEEP;
    const to = sorted[i] - KEEP;
    if (to - from >= FOLD_LEAST) runs.push({ from, to });
  }
  return runs.sort((a, b) => b.to - b.from - (a.to - a.from));
}

function segmentsOf(length, folds) {
  const segments = [];
  let at = 0;
  for (const { from, to } of folds) {
    if (from > at) segments.push({ kind: "cells", from: at, to: from });
    segments.push({ kind: "fold", from, to });
    at = to;
  }
  if (at < length) segments.push({ kind: "cells", from: at, to: length });
  return segments;
}

/** {x, width} in pixels of block `index`; inside a fold, its share of the fold. */
export function spanOf(axis, index) {
  let x = 0;
  for (const segment of axis.segments) {
    const blocks = segment.to - segment.from;
    const width = segment.kind === "fold" ? axis.fold : blocks * axis.cell;
    if (index < segment.to) {
      const step = width / blocks;
      return { x: x + (index - segment.from) * step, width: step, folded: segment.kind === "fold" };
    }
    x += width;
  }
  return { x, width: axis.cell, folded: false };
}

/** The block under `x`, or null right of the axis' end. */
export function indexAt(axis, x) {
  let left = 0;
  for (const segment of axis.segments) {
    const blocks = segment.to - segment.from;
    const width = segment.kind === "fold" ? axis.fold : blocks * axis.cell;
    if (x < left + width) return x < 0 ? null : segment.from + Math.floor(((x - left) / width) * blocks);
    left += width;
  }
  return null;
}

/** Labels under the axis, about every `step` pixels: [{x, text}], 1-based as in sentences. */
export function ticksOf(axis, step = 90) {
  const ticks = [];
  let x = 0;
  for (const segment of axis.segments) {
    if (segment.kind === "fold") {
      x += axis.fold;
      continue;
    }
    const every = niceStep(step / axis.cell);
    for (let i = segment.from; i < segment.to; i++) {
      const at = x + (i - segment.from) * axis.cell;
      const isFirst = i === segment.from;
      const clash = ticks.length > 0 && at - ticks[ticks.length - 1].x < 34;
      if ((isFirst || (i + 1) % every === 0) && !clash) ticks.push({ x: at, text: String(i + 1) });
    }
    x += (segment.to - segment.from) * axis.cell;
  }
  return ticks;
}

function niceStep(blocks) {
  for (const step of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000]) if (step >= blocks) return step;
  return 10_000;
}

/** A lane's states in [from, to) as runs [{state, from, to}]; what lies behind its end is left out. */
export function runsOf(states, from, to) {
  const runs = [];
  for (let i = from; i < Math.min(to, states.length); i++) {
    const last = runs[runs.length - 1];
    if (last && last.state === states[i]) last.to = i + 1;
    else runs.push({ state: states[i], from: i, to: i + 1 });
  }
  return runs;
}
