/** Fix and resend: which pair is looked at, what is sent, and what is said of the gain. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { UNFIXED, createFixing } from "../../static/js/why/fixing.js";
import { MEASURED_TOKENS, diffRows, excerpt, likest, lost, measured } from "../../static/js/why/pairs.js";
import { findingWords, gainWords, gains } from "../../static/js/views/why/fix.js";
import { useLanguage } from "../../static/js/words.js";

const chat = (system, question = "Where is it?") => ({ model: "m", messages: [{ role: "system", content: system }, { role: "user", content: question }] });
const rules = "Be brief, and say what you know. ".repeat(20);
const finding = (changes = {}) => ({
  name: "A clock time",
  advice: "Put it last.",
  translations: { zh: ["时刻", "放到最后。"] },
  breaker: { kind: "clock_time", place: "message", index: 0, constant_chars: 900, before: { piece: 0, start: 0, end: 5, text: "14:03" }, after: { piece: 0, start: 0, end: 5, text: "14:05" } },
  before_remedy: { request: chat(rules, "Where is it? 14:03"), diff: [] },
  after_remedy: { request: chat(rules, "Where is it? 14:05"), diff: [] },
  ...changes,
});

test("a request is held against the earlier one that is most like it, never against its own words", () => {
  const own = chat(`14:05 ${rules}`);
  const entries = [["r-4", { body: own }], ["r-3", { body: chat("Something else entirely.") }], ["r-2", { body: chat(`14:03 ${rules}`) }], ["r-1", { body: chat(`9:00 ${rules}And more that isn't in it. ${rules}`) }]];
  assert.equal(likest(entries, own)[0], "r-2");
  assert.equal(likest(entries.slice(0, 2), own), null);
});

test("only what could have been reused and wasn't is a loss", () => {
  const record = { outcome: "ok", reused_blocks: 0, reusable_blocks: 12 };
  assert.equal(lost(record), true);
  for (const change of [{ reused_blocks: 12 }, { reused_blocks: null }, { reusable_blocks: null }, { outcome: "truncated" }]) assert.equal(lost({ ...record, ...change }), false);
});

test("four requests measure a remedy: each pair under a salt of its own, short, streamed and greedy", () => {
  let made = 0;
  const sent = measured({ before: { ...chat("a"), model: undefined, n: 3, max_completion_tokens: 9 }, after: chat("b"), finding: finding({ before_remedy: null }), model: "server's", salt: () => `salt-${(made += 1)}` });
  assert.deepEqual(sent.map(({ name }) => name), ["as-is-first", "as-is-second", "rewritten-first", "rewritten-second"]);
  assert.deepEqual(sent.map(({ body }) => body.cache_salt), ["salt-1", "salt-1", "salt-2", "salt-2"]);
  assert.equal(sent[0].body.model, "server's");
  assert.deepEqual(sent[2].body.messages, chat("a").messages, "what is well as it is stays");
  assert.equal(sent[3].body.messages[1].content, "Where is it? 14:05");
  for (const { body } of sent) {
    assert.equal(body.max_tokens, MEASURED_TOKENS);
    assert.ok(body.stream && body.stream_options.include_usage && !("n" in body) && !("max_completion_tokens" in body));
  }
});

test("the span stands in some of its text; where that isn't at hand, alone", () => {
  const breaker = { place: "message", index: 0 };
  assert.deepEqual(excerpt(chat("👋 It is 14:03 now."), breaker, { start: 8, end: 13, text: "14:03" }), { lead: "👋 It is ", text: "14:03", tail: " now." });
  const long = excerpt(chat(`${"x".repeat(90)}14:03${"y".repeat(90)}`), breaker, { start: 90, end: 95, text: "14:03" });
  assert.equal(long.lead, `…${"x".repeat(40)}`);
  assert.equal(long.tail, `${"y".repeat(40)}…`);
  for (const other of [{ place: "tools", index: null }, { place: "message", index: 7 }]) assert.deepEqual(excerpt(chat("14:03"), other, { start: 0, end: 5, text: "14:03" }), { lead: "", text: "14:03", tail: "" });
  assert.equal(excerpt(chat("It is 14:04."), breaker, { start: 6, end: 11, text: "14:03" }).lead, "");
});

test("a diff's rows, its file names left out", () => {
  const lines = ["--- before", "+++ after", "@@ -1,3 +1,2 @@", " [system]", "-It is 14:03.", " Rules.", "@@ -9 +8,2 @@", " [user]", "+It is 14:03.", "--- a line of its own"];
  assert.deepEqual(diffRows(lines).map(({ kind, text }) => [kind, text]), [
    ["part", "system"], ["removed", "It is 14:03."], ["same", "Rules."], ["gap", "⋯"], ["part", "user"], ["added", "It is 14:03."], ["removed", "-- a line of its own"],
  ]);
});

function fixture(answer) {
  const sent = [];
  const fixing = createFixing({
    ask: async () => answer,
    salt: () => "salt",
    onChange: () => {},
    send: async ({ body, onStart, signal }) => {
      sent.push(body);
      onStart(`r-${sent.length}`);
      if (signal.aborted) throw new Error("aborted");
    },
  });
  return { fixing, sent };
}

test("a breaker is found, both ways are sent in order, and their ids kept", async () => {
  const { fixing, sent } = fixture({ breakers: [finding()] });
  await fixing.look("r-8", chat("a"), chat("b"));
  assert.equal(fixing.state.phase, "found");
  await fixing.resend("m");
  assert.equal(sent.length, 4);
  assert.equal(fixing.state.phase, "sent");
  assert.deepEqual(fixing.state.ids, { "as-is-first": "r-1", "as-is-second": "r-2", "rewritten-first": "r-3", "rewritten-second": "r-4" });
  fixing.forget();
  assert.deepEqual(fixing.state, UNFIXED);
});

test("nothing found is no finding, and a stop goes back to it", async () => {
  const none = fixture({ breakers: [] });
  await none.fixing.look("r-8", chat("a"), chat("b"));
  assert.deepEqual([none.fixing.state.phase, none.fixing.state.finding], ["none", null]);
  const { fixing } = fixture({ breakers: [finding()] });
  await fixing.look("r-8", chat("a"), chat("b"));
  const going = fixing.resend("m");
  fixing.stop();
  await going;
  assert.deepEqual([fixing.state.phase, fixing.state.error], ["found", null]);
});

test("the gain is said once both are known, and none is not dressed up", () => {
  const record = (cached_tokens, ttft_ms, outcome = "ok") => ({ record: { cached_tokens, ttft_ms, prompt_tokens: 379, outcome } });
  const ids = { "as-is-second": "a", "rewritten-second": "b" };
  assert.equal(gainWords(gains(ids, { a: record(0, 128), b: record(368, 39) })), "368 cached tokens instead of 0, and the first token after 39 ms instead of 128 ms.");
  assert.match(gainWords(gains(ids, { a: record(0, 38), b: record(16, 39) })), /came no sooner \(39 ms, and 38 ms as it is\)/);
  assert.match(gainWords(gains(ids, { a: record(16, 38), b: record(16, 30) })), /^No gain/);
  assert.equal(gainWords(gains(ids, { a: record(0, 128), b: record(null, 39) })), null);
  assert.equal(gainWords(gains(ids, { a: record(0, 128) })), null);
  assert.equal(gains(ids, { a: record(0, 128, "truncated") }).asIs, null);
});

test("a finding speaks the page's language where it can", () => {
  assert.deepEqual(findingWords(finding()), { name: "A clock time", advice: "Put it last." });
  useLanguage("zh");
  assert.deepEqual(findingWords(finding()), { name: "时刻", advice: "放到最后。" });
  assert.equal(findingWords(finding({ translations: undefined })).name, "A clock time");
  useLanguage("en");
});
