import assert from "node:assert/strict";
import { test } from "node:test";

import { SseDecoder, readChatFrame } from "../../static/js/sse.js";

const all = (chunks) => {
  const decoder = new SseDecoder();
  return chunks.flatMap((chunk) => decoder.feed(chunk));
};
const STREAM = '\uFEFF: hello\r\n\r\ndata: {"a":1}\r\n\r\nevent: note\rdata: two\rdata: lines\r\rdata:three\n\nid: 7\ndata\n\ndata: [DONE]\n\n';
const EXPECTED = [
  { event: "message", data: '{"a":1}' },
  { event: "note", data: "two\nlines" },
  { event: "message", data: "three" },
  { event: "message", data: "" },
  { event: "message", data: "[DONE]" },
];

test("a stream reads the same whole, cut in two anywhere, and character by character", () => {
  assert.deepEqual(all([STREAM]), EXPECTED);
  assert.deepEqual(all([...STREAM]), EXPECTED);
  for (let cut = 1; cut < STREAM.length; cut++) {
    assert.deepEqual(all([STREAM.slice(0, cut), STREAM.slice(cut)]), EXPECTED, `cut at ${cut}`);
  }
});

test("an event that isn't complete isn't one", () => {
  assert.deepEqual(all(["data: half"]), []);
  assert.deepEqual(all(["data: half\n"]), []);
});

test("chat frames: text, reasoning, the role frame, usage, errors, the end, garbage", () => {
  const frame = (value) => readChatFrame(JSON.stringify(value));
  assert.equal(frame({ choices: [{ delta: { content: "Hi" } }] }).text, "Hi");
  assert.equal(frame({ choices: [{ delta: { reasoning_content: "Hm" } }] }).text, "Hm");
  assert.equal(frame({ choices: [{ delta: { role: "assistant", content: "" } }] }).text, "");
  assert.equal(frame({ choices: [], usage: { prompt_tokens: 3 } }).text, "");
  assert.equal(frame({ error: { message: "no such model" } }).error, "no such model");
  assert.equal(frame({ error: "broken" }).error, "broken");
  assert.equal(readChatFrame("[DONE]").done, true);
  assert.deepEqual(readChatFrame("{oops"), { text: "", error: null, done: false });
  assert.equal(readChatFrame("null").text, "");
});
