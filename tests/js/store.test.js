import assert from "node:assert/strict";
import { test } from "node:test";

import { EVENT_TYPES } from "../../static/js/protocol.js";
import { MAX_METRICS, MAX_REQUESTS, cacheKey, createStore, initialState, reduce, reduceAll } from "../../static/js/store.js";
import { golden, goldenNames, like } from "./golden.js";

const KEY = cacheKey("http://127.0.0.1:8000", 0);
const opened = () => reduceAll(initialState(), [golden("hello"), golden("snapshot")]);
const blocks = (state) => state.caches[KEY].blocks;

/** Deep-freezes, so that a reducer that changes what it was given throws. */
function freeze(value) {
  if (value === null || typeof value !== "object" || Object.isFrozen(value)) return value;
  if (value instanceof Map) {
    value.set = value.delete = value.clear = () => {
      throw new Error("a reducer changed a Map of the state before");
    };
    for (const entry of value.values()) freeze(entry);
    return value;
  }
  Object.freeze(value);
  Object.values(value).forEach(freeze);
  return value;
}

test("every golden event is applied, to an empty and to a full state, without changing either", () => {
  for (const name of goldenNames) {
    for (const state of [initialState(), opened()]) {
      const next = reduce(freeze(state), golden(name));
      assert.notEqual(next, state);
      assert.equal(next.seq, golden(name).seq, name);
      assert.equal(next.at_ms, golden(name).at_ms, name);
    }
  }
});

test("every type that the protocol lets through has a reducer; another throws", () => {
  for (const type of EVENT_TYPES) assert.doesNotThrow(() => reduce(opened(), golden(type)));
  assert.throws(() => reduce(initialState(), { ...golden("hello"), type: "blocks.melted" }), /no reducer/);
});

test("a batch gives what its events give one by one", () => {
  const events = goldenNames.map(golden).sort((a, b) => a.seq - b.seq);
  assert.deepEqual(reduceAll(initialState(), events), events.reduce(reduce, initialState()));
});

test("a snapshot replaces everything", () => {
  let state = reduce(opened(), like("blocks.stored", { hash: ["aa"], copies: [1] }));
  state = reduce(state, like("request.started", { record: { ...golden("request.started").data.record, id: "r-99" } }));
  assert.equal(state.requestOrder[0], "r-99");
  const again = reduce(state, golden("snapshot"));
  assert.deepEqual(again.requestOrder, ["r-8", "r-9"]);
  assert.equal(blocks(again).has("aa"), false);
  assert.equal(again.hello.instance, "5f3a");
  assert.equal(again.effects.length, 0);
});

test("the blocks of a snapshot keep their chain", () => {
  const state = opened();
  const [first, second] = golden("snapshot").data.blocks[0].hash;
  assert.equal(blocks(state).get(first).parent, null);
  assert.equal(blocks(state).get(second).parent, first);
  assert.equal(blocks(state).get(second).depth, 1);
});

test("requests that a snapshot leaves out still count as sharing", () => {
  const first = golden("snapshot").data.blocks[0].hash[0];
  // The columns say 3 requests; one of them, r-8, is in the snapshot.
  assert.equal(blocks(opened()).get(first).otherRequests, 2);
});

test("stored blocks come with parent, depth and a birth", () => {
  const state = reduce(opened(), like("blocks.stored", { hash: ["n1", "n2"], parent: "80f8d46b9e3ac303", depth: 1, copies: [1, 1] }));
  assert.equal(blocks(state).get("n1").parent, "80f8d46b9e3ac303");
  assert.equal(blocks(state).get("n2").parent, "n1");
  assert.equal(blocks(state).get("n2").depth, 2);
  assert.deepEqual(state.effects.at(-1).hashes, ["n1", "n2"]);
  assert.equal(state.effects.at(-1).kind, "stored");
});

test("a second copy is no birth, and the last copy's removal is an eviction", () => {
  const hash = "80f8d46b9e3ac303";
  let state = reduce(opened(), like("blocks.stored", { hash: [hash], parent: null, depth: 0, copies: [2] }));
  assert.equal(state.effects.length, 0);
  assert.equal(blocks(state).get(hash).reuses, 2);
  state = reduce(state, like("blocks.removed", { hash: [hash], copies: [1] }));
  assert.equal(blocks(state).get(hash).copies, 1);
  state = reduce(state, like("blocks.removed", { hash: [hash], copies: [0] }));
  assert.equal(blocks(state).has(hash), false);
  assert.deepEqual(state.effects.at(-1), { number: state.effectSeq, at_ms: golden("blocks.removed").at_ms, kind: "removed", cache: KEY, request: null, hashes: [hash] });
});

test("a reuse counts and pulses, of unknown blocks too", () => {
  const state = reduce(opened(), like("blocks.reused", { hash: ["80f8d46b9e3ac303", "not-here"] }));
  assert.equal(blocks(state).get("80f8d46b9e3ac303").reuses, 3);
  assert.equal(state.effects.at(-1).hashes.length, 2);
});

test("a clear empties the cache of its rank alone", () => {
  let state = reduce(opened(), like("blocks.stored", { hash: ["other"], copies: [1], parent: null }, { rank: 1 }));
  state = reduce(state, golden("blocks.cleared"));
  assert.equal(blocks(state).size, 0);
  assert.equal(state.caches[cacheKey("http://127.0.0.1:8000", 1)].blocks.size, 1);
});

test("a finished request without a table keeps the one it had", () => {
  let state = reduce(opened(), golden("request.joined"));
  state = reduce(state, like("request.finished", { block_table: null }));
  assert.equal(state.requests["r-8"].table.state.length, 7);
});

test("rings keep their size, and a dropped request still shares its blocks", () => {
  const record = golden("request.started").data.record;
  const events = Array.from({ length: MAX_REQUESTS }, (_, i) => like("request.started", { record: { ...record, id: `n-${i}` } }));
  const state = reduceAll(opened(), events);
  assert.equal(state.requestOrder.length, MAX_REQUESTS);
  assert.equal(Object.keys(state.requests).length, MAX_REQUESTS);
  assert.equal(state.requests["r-8"], undefined);
  assert.equal(blocks(state).get("80f8d46b9e3ac303").otherRequests, 3);
  const many = reduceAll(state, Array.from({ length: MAX_METRICS + 5 }, () => golden("metrics.sampled")));
  assert.equal(many.metrics["http://127.0.0.1:8000"].length, MAX_METRICS);
});

test("another run of the dashboard starts from nothing, the same one goes on", () => {
  assert.equal(reduce(opened(), golden("hello")).requestOrder.length, 2);
  const other = reduce(opened(), like("hello", { instance: "other" }));
  assert.equal(other.requestOrder.length, 0);
  assert.equal(other.ready, false);
});

test("the store applies a frame's events in one go, and a long queue at once", () => {
  const store = createStore({ maxQueue: 3 });
  assert.equal(store.apply(), false);
  store.push(golden("hello"));
  assert.equal(store.state.hello, null);
  assert.equal(store.apply(), true);
  assert.equal(store.state.hello.instance, "5f3a");
  for (let i = 0; i < 4; i++) store.push(golden("metrics.sampled"));
  assert.equal(store.state.metrics["http://127.0.0.1:8000"].length, 4);
});
