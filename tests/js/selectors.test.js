import assert from "node:assert/strict";
import { test } from "node:test";

import * as select from "../../static/js/selectors.js";
import { initialState, reduce, reduceAll } from "../../static/js/store.js";
import { golden, like } from "./golden.js";

const SERVER = "http://127.0.0.1:8000";
const opened = () => reduceAll(initialState(), [golden("hello"), golden("snapshot")]);
const record = (changes) => ({ ...golden("request.finished").data.record, ...changes });
const finished = (changes) => like("request.finished", { record: record(changes) });

test("warm is half or more of what could be reused", () => {
  assert.equal(select.warmth(record({ reused_blocks: 4, reusable_blocks: 8 })), "warm");
  assert.equal(select.warmth(record({ reused_blocks: 3, reusable_blocks: 8 })), "cold");
  assert.equal(select.warmth(record({ reused_blocks: 0, reusable_blocks: 0 })), null);
  assert.equal(select.warmth(record({ reused_blocks: null, reusable_blocks: 8 })), null);
});

test("unknown is null with a reason, never 0", () => {
  const nothing = select.lifetimeHitRate(initialState());
  assert.equal(nothing.value, null);
  assert.equal(nothing.reason, "no-server");
  assert.equal(select.pool(initialState()).resident, null);
  assert.equal(select.firstToken(initialState()).warm.value, null);
  const idle = { window: "lifetime", basis: "counter", hit_tokens: 0, query_tokens: 0, ratio: null };
  const quiet = reduce(opened(), like("hit_rate.updated", { rates: [idle] }));
  assert.equal(select.lifetimeHitRate(quiet).value, null);
  assert.equal(select.lifetimeHitRate(quiet).reason, "no-lookup");
});

test("the hit rate since start is the counters' one, with both its parts", () => {
  const rates = [
    { window: "lifetime", basis: "usage", hit_tokens: 1, query_tokens: 4, ratio: 0.25 },
    { window: "lifetime", basis: "counter", hit_tokens: 11904, query_tokens: 12006, ratio: 11904 / 12006 },
  ];
  const figure = select.lifetimeHitRate(reduce(opened(), like("hit_rate.updated", { rates })));
  assert.deepEqual(figure, { value: 11904 / 12006, hit: 11904, query: 12006, reason: null });
});

test("first-token medians are of finished requests alone, warm and cold apart", () => {
  const state = reduceAll(initialState(), [
    finished({ id: "a", ttft_ms: 40, reused_blocks: 5 }),
    finished({ id: "b", ttft_ms: 44, reused_blocks: 5 }),
    finished({ id: "c", ttft_ms: 160, reused_blocks: 0 }),
    finished({ id: "d", ttft_ms: 9, outcome: null, reused_blocks: 5 }),
    finished({ id: "e", ttft_ms: null, reused_blocks: 5 }),
  ]);
  assert.deepEqual(select.firstToken(state), { warm: { value: 42, n: 2 }, cold: { value: 160, n: 1 } });
});

test("the pool's parts add up to it, the null block left out", () => {
  const parts = select.pool(opened());
  assert.equal(parts.total, 1455);
  assert.equal(parts.running + parts.free + parts.rest, parts.total);
  assert.equal(parts.resident, 6); // one of the five has two copies
  assert.equal(parts.evicted, true);
});

test("the legend counts blocks as the pool does: copies too, of which a running request holds one", () => {
  const block = (hash, copies, otherRequests) => [hash, { hash, copies, otherRequests }];
  const blocks = new Map([block("a", 2, 1), block("b", 1, 3), block("c", 3, 5)]);
  const tally = select.cellTally(blocks, new Map([["a", ["r-1"]]]), new Set(["a"]));
  assert.deepEqual(tally, [0, 0, 2, 3, 1]);
  assert.equal(tally.reduce((sum, n) => sum + n), 6);
});

test("a server without KV events has no block figures", () => {
  const server = { ...golden("server.changed").data.server, streams: [] };
  const state = reduce(initialState(), like("server.changed", { server }));
  assert.equal(select.pool(state).resident, null);
  assert.equal(select.pool(state).reason, "no-events");
});

test("who holds a block, and what runs", () => {
  const state = reduce(opened(), like("request.joined", { record: record({ id: "r-10", outcome: null }) }));
  const first = "80f8d46b9e3ac303";
  assert.deepEqual(select.holdersByHash(state).get(first), ["r-10", "r-8"]);
  assert.ok(select.runningHashes(state).has(first));
  const [cache] = select.cachesOf(state, SERVER);
  assert.equal(select.sharedBy(cache.blocks.get(first), select.holdersByHash(state)), 4);
  assert.equal(select.cellState(cache.blocks.get(first), select.holdersByHash(state), new Set()), select.CELL.many);
  assert.equal(select.cellState(cache.blocks.get(first), new Map(), new Set([first])), select.CELL.running);
});

test("selectors keep their answer while their inputs stay the same", () => {
  const state = opened();
  assert.equal(select.requestRows(state), select.requestRows({ ...state, at_ms: 1 }));
  assert.notEqual(select.requestRows(state), select.requestRows(reduce(state, golden("request.started"))));
});

test("series run from old to new, and mark what isn't known", () => {
  const state = reduceAll(initialState(), [
    finished({ id: "a", prompt_tokens: 100, cached_tokens: 0 }),
    finished({ id: "b", prompt_tokens: 100, cached_tokens: 96 }),
    finished({ id: "c", prompt_tokens: 100, cached_tokens: null }),
    finished({ id: "d", prompt_tokens: null }),
  ]);
  assert.deepEqual(
    select.tokenSeries(state).map(({ id, reused, computed, unknown }) => [id, reused, computed, unknown]),
    [["a", 0, 100, null], ["b", 96, 4, null], ["c", null, null, 100]],
  );
  assert.deepEqual(select.ttftSeries(state, 2).map(({ id }) => id), ["c", "d"]);
});

test("first-token time against computed tokens is of ended requests whose parts are known", () => {
  const state = reduceAll(initialState(), [
    finished({ id: "a", prompt_tokens: 100, cached_tokens: 0, ttft_ms: 80 }),
    finished({ id: "b", prompt_tokens: 100, cached_tokens: 96, ttft_ms: 40 }),
    finished({ id: "c", prompt_tokens: 100, cached_tokens: null }),
    finished({ id: "d", prompt_tokens: 100, cached_tokens: 50, outcome: null }),
  ]);
  assert.deepEqual(select.computedSeries(state).map(({ id, computed, ttft_ms }) => [id, computed, ttft_ms]), [["b", 4, 40], ["a", 100, 80]]);
});

test("the hit rate of a minute: from counters, null without lookups, anew after a reset", () => {
  const point = (at_s, query_tokens, hit_tokens) => like("metrics.sampled", { point: { at_ms: at_s * 1000, query_tokens, hit_tokens } });
  const state = reduceAll(initialState(), [
    point(0, 0, 0), point(10, 100, 0), point(20, 200, 90), point(75, 300, 190), point(140, 300, 190), point(141, 10, 5), point(142, 30, 20),
  ]);
  const ratios = select.hitRateSeries(state, SERVER).map(({ ratio }) => ratio);
  assert.deepEqual(ratios, [null, 0, 0.45, 1, null, null, 0.75]);
});

test("the median of an even number is between the two in the middle", () => {
  assert.equal(select.median([]), null);
  assert.equal(select.median([3]), 3);
  assert.equal(select.median([4, 1, 3, 2]), 2.5);
});
