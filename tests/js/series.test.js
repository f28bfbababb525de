/** What the charts over time are drawn from. */

import assert from "node:assert/strict";
import { test } from "node:test";

import * as series from "../../static/js/numbers/series.js";
import { initialState, reduce, reduceAll } from "../../static/js/store.js";
import { golden, like } from "./golden.js";

const SERVER = golden("server.changed").data.server.id;
const blank = { ...golden("metrics.sampled").data.point, external_hit_tokens: null };
const at = (seconds, fields) => like("metrics.sampled", { point: { ...blank, at_ms: seconds * 1000, ...fields } });
const started = () => reduce(initialState(), golden("server.changed"));
const reading = (window, basis, hit_tokens, query_tokens, since_ms = null) => ({ window, basis, hit_tokens, query_tokens, ratio: null, requests: null, since_ms });
const done = (changes) => like("request.finished", { record: { ...golden("request.finished").data.record, ...changes } });

test("the windows of the hit rate: life, since the mark, the last 1,000 as told", () => {
  const marked = like("hit_rate.updated", { rates: [reading("since_mark", "counter", 50, 100, 15_000), reading("last_1000_requests", "usage", 3, 4)] });
  const state = reduceAll(started(), [at(0, { query_tokens: 100, hit_tokens: 0 }), at(20, { query_tokens: 200, hit_tokens: 0 }), at(30, { query_tokens: 300, hit_tokens: 50 }), marked]);
  const windows = series.hitRateWindows(state);
  assert.deepEqual(windows.lifetime.map(({ ratio }) => ratio), [0, 0, 50 / 300]);
  assert.deepEqual(windows.since_mark.map(({ ratio, query }) => [ratio, query]), [[null, 0], [0.5, 100]]);
  assert.deepEqual(windows.last_1000_requests.map(({ ratio }) => ratio), [0.75]);
  assert.deepEqual(series.hitRateWindows(initialState()).lifetime, []);
});

test("a server without counters has no line, not one at 0", () => {
  const state = reduceAll(started(), [at(0, { query_tokens: null, hit_tokens: null })]);
  assert.deepEqual(series.hitRateWindows(state).lifetime, []);
  assert.deepEqual(series.sourceSeries(state), []);
});

test("each answer is a point of the last request, at its end", () => {
  const state = reduceAll(started(), [done({ id: "a", at_ms: 1000, e2e_ms: 50, prompt_tokens: 100, cached_tokens: 0 }), done({ id: "b", cached_tokens: null })]);
  assert.deepEqual(series.hitRateWindows(state).last_request.map(({ at_ms, ratio }) => [at_ms, ratio]), [[1050, 0]]);
});

test("prompt tokens by source: local, from a connector, computed; contradictions give no figure", () => {
  const state = reduceAll(started(), [
    at(0, { query_tokens: 0, hit_tokens: 0, external_hit_tokens: 0 }),
    at(10, { query_tokens: 1000, hit_tokens: 600, external_hit_tokens: 200 }),
    at(20, { query_tokens: 1000, hit_tokens: 1100, external_hit_tokens: 200 }),
  ]);
  assert.deepEqual(series.sourceSeries(state).map(({ local, external, computed }) => [local, external, computed]), [[0, 0, 0], [600, 200, 200], [1100, 200, null]]);
});

test("preemptions are of the interval; unknown without two readings, or after a restart", () => {
  const state = reduceAll(started(), [at(0, { preemptions: 4 }), at(1, { preemptions: 6 }), at(2, { preemptions: 1 }), at(3, { preemptions: null })]);
  assert.deepEqual(series.queueSeries(state).map(({ preempted }) => preempted), [null, 2, null, null]);
});

test("the pool over time keeps unknown parts unknown", () => {
  const state = reduceAll(started(), [at(0, { held_blocks: 0, cached_blocks: 5, unwritten_blocks: null })]);
  assert.deepEqual(series.poolSeries(state), [{ at_ms: 0, held: 0, cached: 5, unwritten: null }]);
});

test("quantiles lie between neighbours", () => {
  assert.equal(series.quantile([], 0.5), null);
  assert.equal(series.quantile([4, 1, 3, 2], 0.5), 2.5);
  assert.equal(series.quantile([10, 20], 0.95), 19.5);
});

test("first-token times by warmth, of requests that ended well", () => {
  const state = reduceAll(started(), [done({ id: "a", ttft_ms: 40, reused_blocks: 5 }), done({ id: "b", ttft_ms: 90, reused_blocks: 0 }), done({ id: "c", ttft_ms: 9, outcome: "truncated", reused_blocks: 5 })]);
  const { warm, cold } = series.firstTokenGroups(state);
  assert.deepEqual([warm.map(({ id }) => id), cold.map(({ id }) => id)], [["a"], ["b"]]);
});
