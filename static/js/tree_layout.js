/**
 * The prefix tree: blocks as runs, and where each run stands. Pure.
 * A run is a stretch of one chain in which nothing changes: no branch, the same number of requests that share it, all
 * of it running or not, resident or evicted. x is the position in the prompt, which the axis of the lanes gives; here
 * are only rows: {run, y, height}.
 */

import { sharedBy } from "./selectors.js";

/** A leaf is never thinner, so that it can be seen and pointed at; a request never takes more. In pixels. */
export const ROW_MIN = 4;
export const UNIT_MAX = 30;
/** Between one tree and the next. */
const GAP = 7;
/** Where not all chains fit, those drawn take so much of the room; what is left lets thick runs be thick. */
const LEAVES_SHARE = 0.5;
/** So many of them are the best chain of a tree; the others are the largest of all. */
const ROOTS_SHARE = 0.6;

/**
 * {roots, runOf, chains, blocks}. `blocks`: hash to entry; `holders`, `running`: as the selectors give them; `ghosts`:
 * hash to {...entry, gone_ms} of blocks that left a moment ago.
 * A run: {hashes, depth, share, running, gone_ms, parent, children, total} with `depth` of its first block and `total`
 * blocks from there on down. `runOf`: hash to run. `chains`: leaves.
 */
export function buildTree(blocks, { holders, running, ghosts = new Map() }) {
  const entryOf = (hash) => blocks.get(hash) ?? ghosts.get(hash);
  const children = new Map();
  const tops = [];
  const hang = (block) => {
    if (block.parent === null || entryOf(block.parent) === undefined) tops.push(block);
    else if (children.has(block.parent)) children.get(block.parent).push(block);
    else children.set(block.parent, [block]);
  };
  for (const block of blocks.values()) hang(block);
  for (const ghost of ghosts.values()) if (!blocks.has(ghost.hash)) hang(ghost);

  const tree = { roots: [], runOf: new Map(), chains: 0, blocks: blocks.size };
  const order = [];
  const stack = tops.sort(younger).map((block) => ({ block, parent: null }));
  while (stack.length > 0) {
    const { block, parent } = stack.pop();
    const run = growRun(block, parent, { blocks, holders, running, children, runOf: tree.runOf });
    order.push(run);
    (parent === null ? tree.roots : parent.children).push(run);
    const below = children.get(run.hashes.at(-1)) ?? [];
    if (below.length === 0) tree.chains += 1;
    for (const child of below.sort(younger)) stack.push({ block: child, parent: run });
  }
  for (const run of order.reverse()) run.total = run.children.reduce((sum, child) => sum + child.total, run.hashes.length);
  return tree;
}

/** The oldest comes off the stack first, so that what stands keeps its place and what is new stands below it. */
const younger = (a, b) => b.stored_ms - a.stored_ms;

function growRun(first, parent, { blocks, holders, running, children, runOf }) {
  const facts = (block) => [sharedBy(block, holders), running.has(block.hash), blocks.has(block.hash) ? null : block.gone_ms];
  const [share, isRunning, gone_ms] = facts(first);
  const depth = first.depth ?? (parent === null ? 0 : parent.depth + parent.hashes.length);
  const run = { hashes: [], depth, share, running: isRunning, gone_ms, parent, children: [], total: 0 };
  let block = first;
  for (;;) {
    run.hashes.push(block.hash);
    runOf.set(block.hash, run);
    const below = children.get(block.hash);
    if (below?.length !== 1) return run;
    [block] = below;
    const [itsShare, itsRunning, itsGone] = facts(block);
    if (itsShare !== share || itsRunning !== isRunning || itsGone !== gone_ms) return run;
  }
}

/**
 * What is drawn in `height` pixels: {rows: [{run, y, height, context}], height, unit, chains, blocks}.
 * Heights are `unit` pixels a request that shares the run, but ROW_MIN for each chain drawn in it. Where not all fit,
 * the largest do: `chains` and `blocks` count what is drawn. `zoom`: a run that gets all the room, or null; the runs
 * before it are then `context`.
 */
export function fitTree(tree, height, { zoom = null } = {}) {
  const leaves = leavesOf(zoom === null ? tree.roots : [zoom]);
  const kept = chooseLeaves(leaves, zoom === null ? LEAVES_SHARE * height : height);
  const path = zoom === null ? [] : ancestorsOf(zoom);
  const shown = new Set();
  for (const leaf of kept) {
    for (let run = leaf; run !== null && !shown.has(run) && !path.includes(run); run = run.parent) shown.add(run);
  }
  const orders = (zoom === null ? tree.roots : [zoom]).filter((run) => shown.has(run)).map((run) => parentsFirst(run, shown));
  const gap = Math.min(GAP, (height * 0.25) / Math.max(1, orders.length));
  const unit = findUnit(orders, height - gap * (orders.length - 1));
  const rows = [];
  let y = 0;
  for (const order of orders) y += stack(order, y, unit, rows) + gap;
  const used = Math.max(0, y - gap);
  rows.unshift(...path.map((run) => ({ run, y: 0, height: used, context: true, hidden: 0, rest: 0 })));
  const blocks = rows.reduce((sum, { run }) => sum + (run.gone_ms === null ? run.hashes.length : 0), 0);
  return { rows, height: used, unit, chains: kept.length, blocks };
}

function ancestorsOf(run) {
  const path = [];
  for (let above = run.parent; above !== null; above = above.parent) path.unshift(above);
  return path;
}

/** Leaves with {root, score}: the blocks on the way to each, times the requests that share them. */
function leavesOf(roots) {
  const leaves = [];
  for (const root of roots) {
    const stack = [{ run: root, score: 0 }];
    while (stack.length > 0) {
      const { run, score } = stack.pop();
      const here = score + run.hashes.length * Math.max(1, run.share);
      if (run.children.length === 0) leaves.push({ run, root, score: here });
      for (const child of run.children) stack.push({ run: child, score: here });
    }
  }
  return leaves;
}

/** The runs at the end of the chains that are drawn in `room` pixels: the best of each tree first, then the largest. */
function chooseLeaves(leaves, room) {
  const count = Math.max(1, Math.floor(room / ROW_MIN));
  if (leaves.length <= count) return leaves.map(({ run }) => run);
  const bySize = [...leaves].sort((a, b) => b.score - a.score);
  const kept = new Set();
  const met = new Set();
  for (const leaf of bySize) {
    if (kept.size >= Math.max(1, count * ROOTS_SHARE)) break;
    if (!met.has(leaf.root)) kept.add(leaf);
    met.add(leaf.root);
  }
  for (const leaf of bySize) {
    if (kept.size >= count) break;
    kept.add(leaf);
  }
  return [...kept].map(({ run }) => run);
}

/** [{run, children}] of what is drawn of a tree, each run before its children. */
function parentsFirst(root, shown) {
  const order = [];
  const waiting = [root];
  while (waiting.length > 0) {
    const run = waiting.pop();
    const children = run.children.filter((child) => shown.has(child));
    order.push({ run, children });
    waiting.push(...children);
  }
  return order;
}

/** The most pixels a request that let all trees fit: heights grow with it, so it is found by halving. */
function findUnit(orders, room) {
  const fits = (unit) => orders.reduce((sum, order) => sum + heightsOf(order, unit).get(order[0].run), 0) <= room;
  if (fits(UNIT_MAX)) return UNIT_MAX;
  let low = 0;
  let high = UNIT_MAX;
  for (let i = 0; i < 14; i++) {
    const middle = (low + high) / 2;
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

function heightsOf(order, unit) {
  const heights = new Map();
  for (let i = order.length - 1; i >= 0; i--) {
    const { run, children } = order[i];
    const below = children.reduce((sum, child) => sum + heights.get(child), 0);
    heights.set(run, Math.max(ROW_MIN, unit * Math.max(1, run.share), below));
  }
  return heights;
}

/** Adds the rows of a tree at `y`; children share their parent's height from the top down. Answers its height. */
function stack(order, y, unit, rows) {
  const heights = heightsOf(order, unit);
  const top = new Map([[order[0].run, y]]);
  for (const { run, children } of order) {
    let at = top.get(run);
    const row = { run, y: at, height: heights.get(run), context: false, hidden: run.children.length - children.length };
    rows.push(row);
    for (const child of children) {
      top.set(child, at);
      at += heights.get(child);
    }
    row.rest = row.y + row.height - at;
  }
  return heights.get(order[0].run);
}

/** The positions at which a drawn run begins or ends, and the last: what the axis mustn't fold away. */
export function edgesOf(fitted) {
  const edges = new Set();
  let length = 0;
  for (const { run } of fitted.rows) {
    const end = run.depth + run.hashes.length;
    edges.add(run.depth).add(end);
    length = Math.max(length, end);
  }
  return { edges: [...edges].sort((a, b) => a - b), length };
}

/** The row at `y` and block position `index`, the one with the smallest height where several are; or null. */
export function rowAt(fitted, index, y) {
  let found = null;
  for (const row of fitted.rows) {
    if (y < row.y || y >= row.y + row.height) continue;
    const at = index - row.run.depth;
    if (at >= 0 && at < row.run.hashes.length && (found === null || row.height < found.height)) found = row;
  }
  return found;
}

/** Runs from the root down to `run`, itself included. */
export const pathTo = (run) => [...ancestorsOf(run), run];
