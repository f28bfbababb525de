import assert from "node:assert/strict";
import { test } from "node:test";

import { choicesOf, createChoice, receiverOf } from "../../static/js/chosen_server.js";
import { primaryServer, requestRows, residentBlocks } from "../../static/js/selectors.js";
import { initialState, reduceAll } from "../../static/js/store.js";
import { optionWords } from "../../static/js/views/server_choice.js";
import { golden, like } from "./golden.js";

const FIRST = golden("snapshot").data.servers[0].id;
const OTHER = "http://10.0.0.5:8000";

function one() {
  const { data } = golden("snapshot");
  return reduceAll(initialState(), [golden("hello"), like("snapshot", { servers: data.servers.slice(0, 1) })]);
}

function two() {
  const { server } = golden("server.changed").data;
  const { record } = golden("request.started").data;
  return reduceAll(one(), [
    like("server.changed", { server: { ...server, id: OTHER } }),
    like("request.started", { record: { ...record, id: "r-other", server: OTHER } }),
    like("blocks.stored", { hash: ["o1", "o2"], copies: [1, 1], parent: null, depth: 0 }, { server: OTHER }),
    like("stream.gapped", {}, { server: OTHER }),
  ]);
}

test("with one server there is nothing to choose: the state is as it came", () => {
  const state = one();
  assert.equal(createChoice().of(state, OTHER), state);
  assert.deepEqual(choicesOf(state), [FIRST]);
});

test("blocks, requests, effects and gaps are those of the chosen server", () => {
  const shown = createChoice().of(two(), OTHER);
  assert.equal(primaryServer(shown).id, OTHER);
  assert.deepEqual([...residentBlocks(shown).keys()], ["o1", "o2"]);
  assert.deepEqual(requestRows(shown).map(({ record }) => record.id), ["r-other"]);
  assert.deepEqual(shown.effects.map(({ hashes }) => hashes), [["o1", "o2"]]);
  assert.equal(Object.keys(shown.gaps).length, 1);
});

test("the others keep their order, and requests still go to the first", () => {
  const shown = createChoice().of(two(), OTHER);
  assert.deepEqual(choicesOf(shown), [FIRST, OTHER]);
  assert.equal(receiverOf(shown).id, FIRST);
});

test("a server that isn't there, or none, is the first", () => {
  for (const id of [null, "http://gone:1"]) {
    const shown = createChoice().of(two(), id);
    assert.equal(primaryServer(shown).id, FIRST);
    assert.equal(requestRows(shown).some(({ record }) => record.id === "r-other"), false);
    assert.equal(Object.keys(shown.gaps).length, 0);
  }
});

test("the same state gives the same object, and what didn't change in it stays the same", () => {
  const choice = createChoice();
  const state = two();
  const shown = choice.of(state, OTHER);
  assert.equal(choice.of(state, OTHER), shown);
  const next = choice.of(reduceAll(state, [golden("metrics.sampled")]), OTHER);
  assert.notEqual(next, shown);
  for (const part of ["serverOrder", "requestOrder", "effects", "gaps", "caches"]) assert.equal(next[part], shown[part], part);
  const other = choice.of(state, FIRST);
  for (const part of ["servers", "requests", "caches", "metrics", "rates"]) {
    assert.notEqual(other[part], shown[part], "views that watch a part see the choice");
    assert.deepEqual(other[part], shown[part]);
  }
});

test("the list says a server's host, and its state where it isn't up", () => {
  assert.equal(optionWords({ id: OTHER, state: "up" }), "10.0.0.5:8000");
  assert.equal(optionWords({ id: OTHER, state: "down" }), "10.0.0.5:8000 · not reachable");
  assert.equal(optionWords({ id: OTHER, state: "odd" }), "10.0.0.5:8000 · not reached yet");
});
