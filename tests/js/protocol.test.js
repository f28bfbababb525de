import assert from "node:assert/strict";
import { test } from "node:test";

import { EVENT_TYPES, ProtocolError, decodeMessage } from "../../static/js/protocol.js";
import { golden, goldenNames, goldenText } from "./golden.js";

test("every golden event is read, and every event type has one", () => {
  for (const name of goldenNames) assert.equal(decodeMessage(goldenText(name)).type, name);
  assert.deepEqual([...EVENT_TYPES].sort(), [...goldenNames].sort());
});

test("a heartbeat is no event", () => {
  assert.equal(decodeMessage('{"type": "heartbeat"}'), null);
});

const refused = (code, text) => assert.throws(() => decodeMessage(text), (error) => error instanceof ProtocolError && error.code === code);

test("an unknown type throws", () => {
  refused("unknown_type", JSON.stringify({ ...golden("hello"), type: "blocks.melted" }));
  refused("unknown_type", JSON.stringify({ ...golden("hello"), type: "constructor" }));
});

test("another version throws", () => refused("version", JSON.stringify({ ...golden("hello"), v: 2 })));

test("what isn't an envelope throws", () => {
  for (const text of ["", "{", "null", "1", "[]", "{}"]) assert.throws(() => decodeMessage(text), ProtocolError);
  refused("malformed", JSON.stringify({ ...golden("hello"), seq: "1" }));
  refused("malformed", JSON.stringify({ ...golden("hello"), data: null }));
});

test("an event without the data that it needs throws", () => {
  refused("malformed", JSON.stringify({ ...golden("request.started"), data: {} }));
  refused("malformed", JSON.stringify({ ...golden("blocks.stored"), data: { hash: ["a"] } }));
});
