/** The forecast of a prompt that isn't sent yet: its rows, its words, when it is asked for, and how it is graded. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { UNASKED, createAsker } from "../../static/js/why/asking.js";
import { createSentBook } from "../../static/js/why/sent_book.js";
import { MAX_MARKED_CHARS, blockKind, bodyKey, gradeOf, markedText, messageSpans, rankOf, runsOf } from "../../static/js/why/forecast.js";
import { forecastWords } from "../../static/js/views/why/ruler.js";

const forecast = (changes = {}) => ({
  tokens: 70,
  block_size: 16,
  blocks: 5,
  tail_tokens: 6,
  reusable_blocks: 4,
  cached_tokens: 32,
  ranks: [{ rank: 0, resident: [true, true, false, true], cached_tokens: 32, complete: true }],
  ttft: { about_ms: 40, early_ms: 30, late_ms: 55, samples: 9 },
  messages: [
    { index: 0, role: "system", start_token: 3, tokens: 50, boundaries: [[0, 5], [1, 9]], normalised: false },
    { index: 1, role: "user", start_token: 60, tokens: 7, boundaries: [], normalised: false },
  ],
  ...changes,
});

test("blocks are reused up to the first that isn't cached; what is cached behind it is out of reach", () => {
  assert.deepEqual(
    runsOf(forecast()).map(({ kind, first, blocks, tokens }) => [kind, first, blocks, tokens]),
    [["reused", 0, 2, 32], ["computed", 2, 1, 16], ["resident", 3, 1, 16], ["tail", 4, 1, 6]],
  );
  assert.equal(blockKind(forecast({ cached_tokens: null, ranks: [] }), 0), "unknown");
  assert.equal(blockKind(forecast({ cached_tokens: null, ranks: [] }), 4), "tail");
  assert.deepEqual(runsOf(forecast({ block_size: null, blocks: null })), []);
});

test("of several ranks the one with most of it cached is spoken of", () => {
  const ranks = [
    { rank: 0, resident: [false, false], cached_tokens: 0, complete: true },
    { rank: 1, resident: [true, false], cached_tokens: 16, complete: true },
  ];
  assert.equal(rankOf(forecast({ ranks })).rank, 1);
  assert.match(forecastWords(forecast({ ranks, cached_tokens: 16 })).reuse, /reused on rank 1: 16 of 70 tokens/);
});

test("text is cut where blocks end, whole glyphs kept, and not at all where that isn't known", () => {
  const text = "Hello 👋🏽 and more";
  const parts = markedText(forecast(), 0, text);
  assert.deepEqual(parts.map(({ block, kind }) => [block, kind]), [[0, "reused"], [1, "reused"], [2, "computed"]]);
  assert.equal(parts.map((part) => part.text).join(""), text);
  assert.equal(markedText(forecast(), 1, "hi").length, 1);
  assert.equal(markedText(forecast({ messages: null }), 0, text), null);
  assert.equal(markedText(forecast(), 0, "x".repeat(MAX_MARKED_CHARS + 1)), null);
});

test("messages stand where their tokens do", () => {
  assert.deepEqual(messageSpans(forecast()).map(({ role, start, end }) => [role, start * 70, Math.round(end * 70)]), [["system", 3, 53], ["user", 60, 67]]);
  assert.deepEqual(messageSpans(forecast({ messages: null })), []);
});

test("the words say reuse, time and tail, and what isn't known", () => {
  assert.deepEqual(forecastWords(forecast()), {
    reuse: "2 of 5 blocks are cached and would be reused: 32 of 70 tokens.",
    time: "First token after about 40 ms (30 ms to 55 ms for 8 of 10).",
    tail: "The last 6 tokens fill no block, so they are always computed.",
  });
  assert.match(forecastWords(forecast({ cached_tokens: 0 })).reuse, /^Nothing of it can be reused: all 70 tokens, in 5 blocks/);
  assert.match(forecastWords(forecast({ ttft: null })).time, /too few requests/);
  assert.match(forecastWords(forecast({ cached_tokens: null, ranks: [], ttft: null })).reuse, /isn't known without KV events/);
  assert.match(forecastWords(forecast({ tail_tokens: 0 })).tail, /last block of 16 exactly/);
});

test("a forecast is graded against what came; the interval only where both are known", () => {
  const record = { cached_tokens: 32, predicted_cached_tokens: 16, predicted_is_lower_bound: false, ttft_ms: 60, outcome: "ok" };
  const { right, within, said } = gradeOf(forecast(), record);
  assert.deepEqual([right, within, said], [true, false, 32]);
  assert.equal(gradeOf(forecast(), { ...record, ttft_ms: 50 }).within, true);
  assert.equal(gradeOf(forecast(), { ...record, ttft_ms: null }).within, null);
  assert.equal(gradeOf(null, record).right, false);
  assert.equal(gradeOf(null, { ...record, predicted_is_lower_bound: true }).right, true);
  for (const unknown of [null, { ...record, cached_tokens: null }, { ...record, predicted_cached_tokens: null }, { ...record, outcome: "truncated" }]) assert.equal(gradeOf(null, unknown), null);
});

function clockwork() {
  const due = new Map();
  let next = 1;
  return {
    setTimeout: (run, delay) => (due.set(next, { run, delay }), next++),
    clearTimeout: (id) => due.delete(id),
    pass() {
      const waiting = [...due.values()];
      due.clear();
      waiting.forEach(({ run }) => run());
      return waiting.map(({ delay }) => delay);
    },
  };
}

test("only the newest text is asked about, after a moment; one that is under way is aborted", async () => {
  const timers = clockwork();
  const asked = [];
  const asker = createAsker({
    timers,
    onChange: () => {},
    ask: (question, signal) => new Promise((answer, refuse) => {
      asked.push({ question, signal, answer });
      signal.addEventListener("abort", () => refuse(new Error("aborted")));
    }),
  });
  asker.want("a", "A");
  asker.want("b", "B");
  assert.deepEqual(timers.pass(), [250]);
  assert.deepEqual(asked.map(({ question }) => question), ["B"]);
  asker.want("c", "C");
  assert.equal(asked[0].signal.aborted, true);
  timers.pass();
  await Promise.resolve();
  assert.equal(asker.state.phase, "asking");
  asked[1].answer("answer to C");
  await Promise.resolve().then(() => {});
  assert.deepEqual(asker.state, { phase: "done", key: "c", answer: "answer to C", error: null });
  assert.equal(asker.take("a"), null);
  assert.equal(asker.take("c"), "answer to C");
  assert.equal(asker.take("c"), null, "a forecast is graded once");
  asker.again();
  assert.equal(asker.state.answer, "answer to C");
  timers.pass();
  assert.equal(asked[2].question, "C");
  asker.forget();
  assert.deepEqual(asker.state, UNASKED);
  assert.equal(asked[2].signal.aborted, true);
});

test("a failure is said, and what was known before it is not kept", async () => {
  const timers = clockwork();
  const asker = createAsker({ timers, onChange: () => {}, ask: async () => { throw new Error("No tokenizer."); } });
  asker.want("a", "A");
  timers.pass();
  await Promise.resolve().then(() => {});
  assert.deepEqual(asker.state, { phase: "failed", key: "a", answer: null, error: "No tokenizer." });
});

test("what changes a forecast is in its key", () => {
  const body = { model: "m", messages: [{ role: "user", content: "q" }] };
  const others = [{ model: "n" }, { messages: [] }, { tools: [{}] }, { cache_salt: "a" }];
  const keys = [body, ...others.map((change) => ({ ...body, ...change }))].map(bodyKey);
  assert.equal(new Set(keys).size, keys.length);
  assert.equal(bodyKey({ ...body, cache_salt: "a", temperature: 1 }), bodyKey({ ...body, cache_salt: "b" }));
});

test("bodies are kept by the id that the dashboard gave them, with the forecast they had, the newest first", async () => {
  const started = [];
  const book = createSentBook({
    send: async ({ body, onStart }) => onStart(body.id),
    forecastOf: (body) => (body.id === "r-1" ? "forecast" : null),
  });
  for (const id of ["r-1", null, "r-2"]) await book.send({ body: { id }, onStart: (given) => started.push(given) });
  assert.deepEqual(started, ["r-1", null, "r-2"]);
  assert.deepEqual(book.get("r-1"), { body: { id: "r-1" }, forecast: "forecast" });
  assert.deepEqual(book.newest().map(([id]) => id), ["r-2", "r-1"]);
  for (let i = 3; i < 60; i++) await book.send({ body: { id: `r-${i}` }, onStart: () => {} });
  assert.equal(book.get("r-1"), null);
  assert.equal(book.newest().length, 50);
});
