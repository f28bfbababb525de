import assert from "node:assert/strict";
import { test } from "node:test";

import { createFrame, throttle } from "../../static/js/frame.js";

/** A window whose clock only moves when `spend` says so, and whose frames run when told. */
function fakeWindow() {
  const win = {
    time: 0,
    frames: [],
    timers: [],
    performance: { now: () => win.time },
    requestAnimationFrame: (draw) => win.frames.push(draw),
    setTimeout: (run, wait) => win.timers.push({ run, wait }),
    clearTimeout: () => {},
    next: () => win.frames.shift()(),
  };
  return win;
}

const frameOf = (win, views, errors = []) =>
  createFrame({ views, prepare: () => ({ state: null, ui: null }), onError: (error) => errors.push(error), win });

test("a frame draws every view once, and again when one asks for it", () => {
  const win = fakeWindow();
  const drawn = [];
  const frame = frameOf(win, [() => void drawn.push("a"), () => drawn.push("b") && 120]);
  frame.invalidate();
  frame.invalidate();
  assert.equal(win.frames.length, 1);
  win.next();
  assert.deepEqual(drawn, ["a", "b"]);
  assert.equal(win.timers[0].wait, 120);
});

test("what a slow view leaves no time for comes first in the next frame, in the same order", () => {
  const win = fakeWindow();
  const drawn = [];
  const slow = (name) => () => {
    drawn.push(name);
    win.time += 50;
    return null;
  };
  frameOf(win, [slow("a"), slow("b"), slow("c")]).invalidate();
  win.next();
  assert.deepEqual(drawn, ["a"]);
  win.next();
  assert.deepEqual(drawn, ["a", "b"]);
  win.next();
  assert.deepEqual(drawn, ["a", "b", "c"]);
});

test("what moves by itself is drawn in a quarter of the time, what a person does at once", () => {
  const win = fakeWindow();
  let drawn = 0;
  const frame = frameOf(win, [() => {
    drawn += 1;
    win.time += 10;
    return 0;
  }]);
  frame.invalidate();
  win.next();
  assert.equal(win.frames.length, 0);
  assert.equal(win.timers.at(-1).wait, 30);
  frame.soon();
  assert.equal(win.timers.length, 1, "what is due already isn't put off");
  frame.invalidate();
  win.next();
  assert.equal(drawn, 2);
  win.time += 10;
  frame.soon();
  assert.equal(win.timers.length, 2);
  win.timers.at(-1).run();
  win.next();
  assert.equal(drawn, 3);
});

test("what comes by itself is drawn at least fourteen times a second while frames are short, and at once after a rest", () => {
  const win = fakeWindow();
  const frame = frameOf(win, [() => {
    win.time += 60;
    return null;
  }]);
  frame.invalidate();
  win.next();
  frame.soon();
  assert.equal(win.frames.length, 1, "60 of 70 ms are over");
  win.next();
  win.time += 500;
  frame.soon();
  assert.equal(win.frames.length, 1);
});

test("a page that is printed is drawn whole", () => {
  const win = fakeWindow();
  const drawn = [];
  const slow = (name) => () => {
    drawn.push(name);
    win.time += 50;
    return null;
  };
  frameOf(win, [slow("a"), slow("b"), slow("c")]).draw({ whole: true });
  assert.deepEqual(drawn, ["a", "b", "c"]);
});

test("a view that fails stops no other", () => {
  const win = fakeWindow();
  const errors = [];
  const drawn = [];
  frameOf(win, [() => { throw new Error("no"); }, () => void drawn.push("b")], errors).invalidate();
  win.next();
  assert.deepEqual([errors.length, drawn], [1, ["b"]]);
});

test("the throttle waits its interval, and longer where drawing is dear", () => {
  const gate = throttle(100);
  assert.equal(gate.wait(0), 0);
  gate.drawn(0, 10);
  assert.equal(gate.wait(40), 60);
  gate.drawn(100, 60);
  assert.equal(gate.wait(200), 380);
  gate.drawn(1000, 5000);
  assert.equal(gate.wait(1000), 1000);
});
