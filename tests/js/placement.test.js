import assert from "node:assert/strict";
import { test } from "node:test";

import { chainOrder, chooseCapacity, emptyPlacement, gridShape, placeAll, updatePlacement } from "../../static/js/placement.js";

/** Blocks from "hash<parent" texts, each a moment younger than the one before. */
const make = (...texts) =>
  new Map(
    texts.map((text, i) => {
      const [hash, parent = null] = text.split("<");
      return [hash, { hash, parent, stored_ms: i }];
    }),
  );

test("chains stay together, older ones first", () => {
  const blocks = make("a", "x", "b<a", "y<x", "c<b", "b2<a");
  assert.deepEqual(chainOrder(blocks), ["a", "b", "c", "b2", "x", "y"]);
});

test("a block whose parent isn't resident starts a chain", () => {
  assert.deepEqual(chainOrder(make("b<gone", "c<b")), ["b", "c"]);
});

test("a block keeps its place; new ones go behind their parent, evicted ones leave a gap", () => {
  const blocks = make("a", "b<a", "c<b");
  const placement = placeAll(blocks, 10);
  const more = new Map([...blocks, ...make("x", "y<x"), ...make("d<c")]);
  assert.deepEqual(updatePlacement(placement, more).born, ["x", "y", "d"]);
  assert.deepEqual(placement.hashAt.slice(0, 6), ["a", "b", "c", "x", "y", "d"]);
  more.delete("b");
  assert.deepEqual(updatePlacement(placement, more).gone, [{ hash: "b", slot: 1 }]);
  assert.deepEqual(placement.hashAt.slice(0, 6), ["a", null, "c", "x", "y", "d"]);
  more.set("z", { hash: "z", parent: null, stored_ms: 9 });
  updatePlacement(placement, more);
  assert.equal(placement.slotOf.get("z"), 1);
});

test("a run that no gap holds whole is spread over the gaps; what has no place at all isn't drawn", () => {
  const placement = placeAll(make("a", "b", "c", "d"), 5);
  const after = make("a", "c", "n1", "n2<n1", "n3<n2");
  updatePlacement(placement, after);
  assert.deepEqual(placement.hashAt, ["a", "n1", "c", "n2", "n3"]);
  updatePlacement(placement, new Map([...after, ...make("over")]));
  assert.equal(placement.slotOf.has("over"), false);
});

test("places and blocks agree after any history", () => {
  let seed = 7;
  const random = () => ((seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648);
  const blocks = new Map();
  const placement = emptyPlacement(60);
  for (let step = 0; step < 400; step++) {
    const hashes = [...blocks.keys()];
    if (random() < 0.4 && hashes.length > 0) blocks.delete(hashes[Math.floor(random() * hashes.length)]);
    else if (blocks.size < 55) {
      const parent = random() < 0.7 && hashes.length > 0 ? hashes[Math.floor(random() * hashes.length)] : null;
      blocks.set(`h${step}`, { hash: `h${step}`, parent, stored_ms: step });
    }
    updatePlacement(placement, blocks);
    assert.equal(placement.slotOf.size, blocks.size);
    for (const [hash, slot] of placement.slotOf) assert.equal(placement.hashAt[slot], hash);
    assert.equal(placement.hashAt.filter((hash) => hash !== null).length, blocks.size);
  }
});

test("a small cache is drawn large, a full one whole, and the size doesn't flutter", () => {
  assert.equal(chooseCapacity(20, 5305), 64);
  assert.equal(chooseCapacity(170, 5305, { current: 192 }), 320);
  assert.equal(chooseCapacity(160, 5305, { current: 320 }), 320);
  assert.equal(chooseCapacity(0, 5305, { current: 2592 }), 64);
  assert.equal(chooseCapacity(5300, 5305), 5305);
  assert.equal(chooseCapacity(20, 63), 63);
  assert.equal(chooseCapacity(20, 5305, { current: 192, whole: true }), 5305);
  assert.equal(chooseCapacity(20, 5305, { least: 150 }), 192);
  assert.equal(chooseCapacity(70_000, null), 70_000);
});

test("the grid has room for every place and is about square", () => {
  for (const capacity of [1, 63, 192, 5305, 65_536]) {
    const { columns, rows } = gridShape(capacity, 640, 190);
    assert.ok(columns * rows >= capacity && columns * (rows - 1) < capacity);
  }
});
