import assert from "node:assert/strict";
import { test } from "node:test";

import { CELL_MAX, indexAt, layoutAxis, runsOf, spanOf, ticksOf } from "../../static/js/axis.js";

const lane = (...runs) => runs.flatMap(([state, n]) => new Array(n).fill(state));
const warm = lane(["reused", 92], ["partial", 1]);
const cold = lane(["computed", 92], ["partial", 1]);
const small = lane(["reused", 11], ["computed", 1], ["partial", 1]);
const total = (axis) => axis.segments.reduce((sum, { from, to }) => sum + to - from, 0);
const width = (axis) => axis.segments.reduce((sum, { kind, from, to }) => sum + (kind === "fold" ? axis.fold : (to - from) * axis.cell), 0);

test("what fits isn't folded", () => {
  const axis = layoutAxis([small, small], 320);
  assert.deepEqual(axis.segments, [{ kind: "cells", from: 0, to: 13 }]);
  assert.equal(axis.cell, CELL_MAX);
});

test("a long prompt folds into one line, its ends left standing", () => {
  for (const room of [300, 330, 420, 560]) {
    const axis = layoutAxis([warm, cold, small], room);
    assert.equal(axis.segments.filter(({ kind }) => kind === "fold").length, 1);
    assert.equal(total(axis), 93);
    assert.ok(width(axis) <= room + 0.001, `${width(axis)} in ${room}`);
    assert.ok(axis.cell >= 6.5, `cells of ${axis.cell}`);
    const fold = axis.segments.find(({ kind }) => kind === "fold");
    assert.ok(fold.from >= 15 && fold.to <= 90, "neither the small prompts' ends nor the long ones' are folded");
  }
});

test("no lane changes its state within a fold", () => {
  const axis = layoutAxis([warm, lane(["reused", 50], ["computed", 42], ["partial", 1])], 320);
  for (const { kind, from, to } of axis.segments) {
    if (kind !== "fold") continue;
    assert.ok(to <= 50 || from >= 50);
  }
});

test("unfolded, and where nothing can be folded, cells get narrower instead", () => {
  const axis = layoutAxis([warm], 310, { fold: false });
  assert.equal(axis.segments.length, 1);
  assert.ok(Math.abs(axis.cell - 310 / 93) < 1e-9);
  const busy = Array.from({ length: 400 }, (_, i) => (i % 2 ? "reused" : "computed"));
  assert.ok(width(layoutAxis([busy], 310)) <= 310.001);
});

test("the place of a block and the block at a place agree, folded or not", () => {
  const axis = layoutAxis([warm, cold], 320);
  for (let i = 0; i < 93; i++) {
    const { x, width: room } = spanOf(axis, i);
    assert.equal(indexAt(axis, x + room / 2), i);
  }
  assert.equal(indexAt(axis, 321), null);
  assert.equal(indexAt(axis, -1), null);
});

test("nothing to show, no room to show it", () => {
  assert.deepEqual(layoutAxis([], 300).segments, []);
  assert.deepEqual(layoutAxis([[]], 300).segments, []);
  assert.deepEqual(layoutAxis([warm], 0).segments, []);
});

test("ticks count from 1, stay apart and name a fold's far side", () => {
  const ticks = ticksOf(layoutAxis([warm, cold], 320), 64);
  assert.equal(ticks[0].text, "1");
  assert.ok(ticks.some(({ text }) => Number(text) > 80));
  ticks.slice(1).forEach((tick, i) => assert.ok(tick.x - ticks[i].x >= 34));
});

test("runs of a lane, cut at its end", () => {
  assert.deepEqual(runsOf(small, 9, 40), [
    { state: "reused", from: 9, to: 11 },
    { state: "computed", from: 11, to: 12 },
    { state: "partial", from: 12, to: 13 },
  ]);
  assert.deepEqual(runsOf(small, 20, 40), []);
});

test("the tree shares the axis: its edges stay out of folds, its length finds room where lanes stay readable", () => {
  const long = lane(["reused", 300]);
  const folded = layoutAxis([long], 400);
  assert.equal(folded.segments.filter(({ kind }) => kind === "fold").length, 1);
  const shared = layoutAxis([long], 400, { tree: { edges: [0, 150, 300], length: 300 } });
  const inFold = (at) => shared.segments.some(({ kind, from, to }) => kind === "fold" && from < at && at < to);
  assert.equal(inFold(150), false);

  const short = lane(["reused", 16]);
  const longer = layoutAxis([short], 400, { tree: { edges: [0, 24], length: 24 } });
  assert.equal(longer.length, 24);
  const edges = Array.from({ length: 200 }, (_, i) => i * 10);
  const cut = layoutAxis([short], 400, { tree: { edges, length: 2000 } });
  assert.equal(cut.length, 16);
  assert.ok(cut.cell > 10);
});
