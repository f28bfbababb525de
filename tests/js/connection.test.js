import assert from "node:assert/strict";
import { test } from "node:test";

import { connect } from "../../static/js/connection.js";

/** A window with a clock that moves when told, its timers, and sockets that are only noted. */
function fakeWindow() {
  const win = { time: 0, sockets: [], timers: new Map(), last: 0, performance: { now: () => win.time } };
  const start = (run, wait, every) => {
    win.timers.set((win.last += 1), { run, at: win.time + wait, every });
    return win.last;
  };
  win.setTimeout = (run, wait) => start(run, wait, null);
  win.setInterval = (run, wait) => start(run, wait, wait);
  win.clearTimeout = win.clearInterval = (id) => win.timers.delete(id);
  win.WebSocket = class {
    constructor(url) {
      Object.assign(this, { url, sent: [] });
      win.sockets.push(this);
    }
    send(text) {
      this.sent.push(text);
    }
    close() {
      this.closed = true;
    }
  };
  win.pass = (ms) => {
    for (const end = win.time + ms; win.time < end; win.time += 500) {
      for (const [id, timer] of [...win.timers]) {
        if (timer.at > win.time) continue;
        if (timer.every === null) win.timers.delete(id);
        else timer.at += timer.every;
        timer.run();
      }
    }
  };
  return win;
}

function connected() {
  const win = fakeWindow();
  const states = [];
  connect({ base: "http://h/", position: () => null, onMessage: () => {}, onState: (state) => states.push(state), win });
  const [socket] = win.sockets;
  socket.onopen();
  socket.onmessage({ data: "hello" });
  return { win, states, socket };
}

test("the page says that it is there every fifteen seconds", () => {
  const { win, socket } = connected();
  win.pass(46_000);
  assert.deepEqual(socket.sent, Array(3).fill('{"type":"heartbeat"}'));
});

test("a silence of 45 seconds is borne, one of a minute ends the connection, and another begins", () => {
  const { win, states, socket } = connected();
  win.pass(45_000);
  socket.onmessage({ data: "heartbeat" });
  win.pass(59_000);
  assert.deepEqual(states, ["connecting", "live", "live"]);
  win.pass(15_000);
  assert.equal(socket.closed, true);
  assert.equal(states.at(-1), "lost");
  assert.equal(win.sockets.length, 2);
});

test("however many messages come, one timer watches over them; none is left of a connection that ended", () => {
  const { win, socket } = connected();
  for (let i = 0; i < 1000; i++) socket.onmessage({ data: "event" });
  assert.equal(win.timers.size, 2);
  socket.onclose();
  assert.equal(win.timers.size, 1, "only the next try");
});
