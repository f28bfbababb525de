import assert from "node:assert/strict";
import { test } from "node:test";

import { ROW_MIN, UNIT_MAX, buildTree, edgesOf, fitTree, pathTo, rowAt } from "../../static/js/tree_layout.js";

/** Blocks from "hash<parent" texts, each a moment younger than the one before. */
const make = (...texts) =>
  new Map(
    texts.map((text, i) => {
      const [hash, parent = null] = text.split("<");
      return [hash, { hash, parent, depth: null, stored_ms: i, otherRequests: 0 }];
    }),
  );
const chain = (name, length, parent = null) =>
  Array.from({ length }, (_, i) => (i === 0 ? (parent === null ? `${name}0` : `${name}0<${parent}`) : `${name}${i}<${name}${i - 1}`));
/** {request: [hashes]} as hash to requests. */
const held = (tables) => {
  const holders = new Map();
  for (const [id, hashes] of Object.entries(tables)) for (const hash of hashes) holders.set(hash, [...(holders.get(hash) ?? []), id]);
  return holders;
};
const build = (blocks, holders = new Map(), more = {}) => buildTree(blocks, { holders, running: new Set(), ...more });
const texts = (runs) => runs.map((run) => run.hashes.join(""));

test("a chain is one run; where requests part it branches", () => {
  const blocks = make("a", "b<a", "c<b", "d<c", "x<b", "y<x");
  const tree = build(blocks, held({ r1: ["a", "b", "c", "d"], r2: ["a", "b", "x", "y"] }));
  assert.deepEqual(texts(tree.roots), ["ab"]);
  assert.deepEqual(texts(tree.roots[0].children), ["cd", "xy"]);
  assert.deepEqual(tree.roots[0].children.map(({ depth, share }) => [depth, share]), [[2, 1], [2, 1]]);
  assert.equal(tree.roots[0].share, 2);
  assert.equal(tree.roots[0].total, 6);
  assert.equal(tree.chains, 2);
  assert.equal(tree.runOf.get("y"), tree.roots[0].children[1]);
  assert.deepEqual(texts(pathTo(tree.runOf.get("x"))), ["ab", "xy"]);
});

test("a run also ends where fewer requests share it, or where running ones begin", () => {
  const blocks = make(...chain("a", 5));
  const all = [...blocks.keys()];
  const tree = build(blocks, held({ r1: all, r2: all.slice(0, 2) }), { running: new Set(all.slice(0, 4)) });
  assert.deepEqual(pathTo(tree.runOf.get("a4")).map((run) => [run.hashes.length, run.share, run.running]), [[2, 2, true], [2, 1, true], [1, 1, false]]);
});

test("a block without its parent starts a tree at its own depth", () => {
  const blocks = make("b<gone", "c<b");
  blocks.get("b").depth = 7;
  const [root] = build(blocks).roots;
  assert.deepEqual([root.depth, root.hashes.length, root.share], [7, 2, 0]);
});

test("what was evicted a moment ago hangs where it was", () => {
  const blocks = make("a", "b<a");
  const ghosts = new Map([["c", { hash: "c", parent: "b", depth: 2, stored_ms: 2, otherRequests: 0, gone_ms: 50 }]]);
  const tree = build(blocks, new Map(), { ghosts });
  assert.deepEqual(pathTo(tree.runOf.get("c")).map((run) => [run.hashes.join(""), run.gone_ms]), [["ab", null], ["c", 50]]);
  assert.equal(fitTree(tree, 100).blocks, 2);
});

test("height is the requests that share it; children share their parent's height", () => {
  const blocks = make("t0", "t1<t0", "p<t1", "q<t1", "other");
  const tree = build(blocks, held({ r1: ["t0", "t1", "p"], r2: ["t0", "t1", "q"], r3: ["t0", "t1", "q"], r4: ["other"] }));
  const { rows, unit, chains } = fitTree(tree, 200);
  assert.equal(unit, UNIT_MAX);
  assert.equal(chains, 3);
  const at = Object.fromEntries(rows.map(({ run, y, height }) => [run.hashes.join(""), [y, height]]));
  assert.deepEqual(at.t0t1, [0, 3 * UNIT_MAX]);
  assert.deepEqual(at.p, [0, UNIT_MAX]);
  assert.deepEqual(at.q, [UNIT_MAX, 2 * UNIT_MAX]);
  assert.ok(at.other[0] > 3 * UNIT_MAX && at.other[1] === UNIT_MAX);
});

test("where room is short the unit shrinks, and no row overlaps another", () => {
  const texts = ["t"];
  const tables = {};
  for (let i = 0; i < 18; i++) {
    texts.push(`l${i}<t`);
    tables[`r${i}`] = ["t", `l${i}`];
  }
  const fitted = fitTree(build(make(...texts), held(tables)), 150);
  assert.ok(fitted.unit < 9 && fitted.height <= 150.001);
  assert.equal(fitted.chains, 18);
  const leaves = fitted.rows.filter(({ run }) => run.children.length === 0).sort((a, b) => a.y - b.y);
  for (let i = 1; i < leaves.length; i++) assert.ok(leaves[i].y >= leaves[i - 1].y + leaves[i - 1].height - 1e-9);
});

test("of thousands of chains the largest are drawn, of more than one tree, and the rest is counted", () => {
  const texts = [];
  for (let i = 0; i < 3000; i++) texts.push(...chain(`c${i}_`, 1 + (i % 40)));
  texts.push(...chain("big", 300), ...Array.from({ length: 500 }, (_, i) => `leaf${i}<big299`));
  const tree = build(make(...texts));
  const begun = performance.now();
  const fitted = fitTree(tree, 160);
  assert.ok(performance.now() - begun < 200);
  assert.equal(tree.chains, 3500);
  assert.ok(fitted.chains === 160 / ROW_MIN / 2);
  assert.ok(fitted.height <= 160.001);
  assert.ok(fitted.rows.some(({ run }) => run.hashes[0] === "big0"));
  const roots = new Set(fitted.rows.filter(({ run }) => run.parent === null).map(({ run }) => run));
  assert.ok(roots.size > 10);
  const trunk = fitted.rows.find(({ run }) => run.hashes[0] === "big0");
  assert.ok(trunk.hidden > 400);
  assert.ok(fitted.rows.every(({ height }) => height >= ROW_MIN - 1e-9));
});

test("zoomed in, a branch has all the room and what leads to it is context", () => {
  const blocks = make("a", "b<a", "p<b", "q<p", "r<p", "z<b", "other");
  const tree = build(blocks);
  const fitted = fitTree(tree, 100, { zoom: tree.runOf.get("p") });
  const drawn = fitted.rows.map(({ run, context }) => `${run.hashes.join("")}${context ? " (context)" : ""}`);
  assert.deepEqual(drawn.toSorted(), ["ab (context)", "p", "q", "r"]);
  assert.equal(fitted.rows[0].height, fitted.height);
});

test("a position finds its row, and the edges are what the axis keeps", () => {
  const blocks = make("a", "b<a", "c<b", "x<b");
  const fitted = fitTree(build(blocks, held({ r1: ["a", "b", "c"], r2: ["a", "b", "x"] })), 100);
  assert.equal(rowAt(fitted, 1, 2).run.hashes.join(""), "ab");
  assert.equal(rowAt(fitted, 2, 2).run.hashes.join(""), "c");
  assert.equal(rowAt(fitted, 2, UNIT_MAX + 2).run.hashes.join(""), "x");
  assert.equal(rowAt(fitted, 3, 2), null);
  assert.equal(rowAt(fitted, 1, 99), null);
  assert.deepEqual(edgesOf(fitted), { edges: [0, 2, 3], length: 3 });
});

test("5,306 blocks become a tree without a pause that anyone would notice", () => {
  const texts = [...chain("sys", 60)];
  for (let i = 0; i < 180; i++) texts.push(...chain(`d${i}_`, 29, i % 3 ? "sys59" : null));
  const blocks = make(...texts);
  build(blocks);
  const begun = performance.now();
  const fitted = fitTree(build(blocks), 160);
  assert.ok(performance.now() - begun < 2000);
  assert.ok(fitted.rows.length > 10);
});

test("an empty cache is an empty tree", () => {
  assert.deepEqual(fitTree(build(new Map()), 100).rows, []);
});
