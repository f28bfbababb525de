/**
 * Where each resident block stands in the cache picture. Pure.
 * A block keeps its place from birth to eviction, so that nothing but what happened moves. New blocks go right behind
 * their parent where there is room, a new chain into the first gap that holds it; a change of size sets everything
 * afresh, chain after chain.
 */

const SIZES = [64, 112, 192, 320, 512, 768, 1152, 1728, 2592, 3888, 6144, 12_288, 24_576, 49_152];

/** An empty picture of `capacity` places. */
export function emptyPlacement(capacity) {
  return { capacity, slotOf: new Map(), hashAt: new Array(capacity).fill(null) };
}

/**
 * Places to draw for `resident` blocks in a pool of `total` (null: unknown). Grows in steps, so that a small cache is
 * drawn large, but for no fewer than `least`; stays at `current` unless that is too small or too large.
 */
export function chooseCapacity(resident, total, { current = 0, whole = false, least = 0 } = {}) {
  const limit = Math.max(resident, total ?? SIZES.at(-1));
  if (whole && total !== null) return limit;
  const step = (places) => Math.min(limit, SIZES.find((size) => size >= Math.max(least, places)) ?? limit);
  const wanted = step(resident * 1.15);
  // A cache that shrinks a little keeps its picture, so that it doesn't flutter between two sizes.
  return current >= wanted && current <= step(resident * 1.5) ? current : wanted;
}

/** Every block, each chain depth first from its root, older chains and children first. `blocks`: hash to entry. */
export function chainOrder(blocks) {
  const children = new Map();
  const roots = [];
  for (const block of blocks.values()) {
    if (block.parent !== null && blocks.has(block.parent)) {
      const siblings = children.get(block.parent);
      if (siblings) siblings.push(block);
      else children.set(block.parent, [block]);
    } else {
      roots.push(block);
    }
  }
  const younger = (a, b) => b.stored_ms - a.stored_ms;
  const order = [];
  const stack = roots.sort(younger);
  while (stack.length > 0) {
    const block = stack.pop();
    order.push(block.hash);
    const below = children.get(block.hash);
    if (below) stack.push(...below.sort(younger));
  }
  return order;
}

/** The picture of `blocks` set afresh. */
export function placeAll(blocks, capacity) {
  const placement = emptyPlacement(capacity);
  chainOrder(blocks)
    .slice(0, capacity)
    .forEach((hash, slot) => put(placement, hash, slot));
  return placement;
}

/**
 * Brings `placement` up to date with `blocks`, in place. Answers what changed: {born: [hash], gone: [{hash, slot}]}.
 */
export function updatePlacement(placement, blocks) {
  const gone = [];
  for (const [hash, slot] of placement.slotOf) {
    if (!blocks.has(hash)) gone.push({ hash, slot });
  }
  for (const { hash, slot } of gone) {
    placement.slotOf.delete(hash);
    placement.hashAt[slot] = null;
  }
  const born = [];
  for (const hash of blocks.keys()) if (!placement.slotOf.has(hash)) born.push(hash);
  for (const run of chainRuns(born, blocks)) placeRun(placement, run, blocks.get(run[0]).parent);
  return { born, gone };
}

/** New blocks as runs in which each is the parent of the next. */
function chainRuns(hashes, blocks) {
  const runs = [];
  for (const hash of hashes) {
    const run = runs[runs.length - 1];
    if (run && blocks.get(hash).parent === run[run.length - 1]) run.push(hash);
    else runs.push([hash]);
  }
  return runs;
}

function placeRun(placement, run, parent) {
  const after = parent === null ? null : placement.slotOf.get(parent);
  const start = after === undefined || after === null ? 0 : after + 1;
  let slot = findGap(placement, run.length, start);
  if (slot === null) slot = findGap(placement, run.length, 0);
  if (slot !== null) {
    run.forEach((hash, i) => put(placement, hash, slot + i));
    return;
  }
  let next = 0;
  for (const hash of run) {
    while (next < placement.capacity && placement.hashAt[next] !== null) next += 1;
    if (next === placement.capacity) return;
    put(placement, hash, next);
  }
}

/** The first of `length` empty places in a row at or behind `start`, or null. */
function findGap(placement, length, start) {
  let free = 0;
  for (let slot = start; slot < placement.capacity; slot++) {
    free = placement.hashAt[slot] === null ? free + 1 : 0;
    if (free === length) return slot - length + 1;
  }
  return null;
}

function put(placement, hash, slot) {
  placement.slotOf.set(hash, slot);
  placement.hashAt[slot] = hash;
}

/** {columns, rows} for `capacity` cells as square as the room of `width` to `height` allows. */
export function gridShape(capacity, width, height) {
  const side = Math.sqrt((Math.max(1, width) * Math.max(1, height)) / capacity);
  const columns = Math.max(1, Math.min(capacity, Math.round(width / side)));
  return { columns, rows: Math.ceil(capacity / columns) };
}
