/** The numbers: what stands in each cell, and why where nothing does. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { findingsOf, reportOn, tally } from "../../static/js/numbers/doctor.js";
import { forecastRun, forecastScore } from "../../static/js/numbers/forecasts.js";
import { agreement, differences, engineRows, hitRateTable } from "../../static/js/numbers/hit_rates.js";
import { otherTiers, poolParts, savings } from "../../static/js/numbers/pool.js";
import { coverageOf, diagnosisOf, groupsOf, pictureOf, streamFields, streamTone } from "../../static/js/numbers/streams.js";
import { initialState, reduce, reduceAll } from "../../static/js/store.js";
import { golden, like } from "./golden.js";

const opened = () => reduceAll(initialState(), [golden("hello"), golden("snapshot")]);
const server = (changes = {}) => ({ ...golden("server.changed").data.server, ...changes });
const stream = (changes = {}) => ({ ...server().streams[0], ...changes });
const told = (state, changes) => reduce(state, like("server.changed", { server: server(changes) }));
const reading = (window, basis, hit_tokens, query_tokens, more = {}) => ({ window, basis, hit_tokens, query_tokens, ratio: null, requests: null, since_ms: null, ...more });
const rated = (state, rates, found = []) => reduce(state, like("hit_rate.updated", { rates, differences: found }));
const cell = (state, window, basis) => hitRateTable(state).find((row) => row.window === window).cells.find((one) => one.basis === basis);
const sampled = (state, point) => reduce(state, like("metrics.sampled", { point: { ...golden("metrics.sampled").data.point, ...point } }));
const done = (changes) => like("request.finished", { record: { ...golden("request.finished").data.record, ...changes } });

test("a rate is its own parts divided, and nothing looked up is neither 0 nor unknown", () => {
  const state = rated(opened(), [reading("lifetime", "counter", 11904, 12006, { ratio: 0.5 }), reading("last_minute", "usage", 0, 0, { requests: 0 })]);
  const lifetime = cell(state, "lifetime", "counter");
  assert.deepEqual([lifetime.state, lifetime.hit, lifetime.query, lifetime.ratio], ["value", 11904, 12006, 11904 / 12006]);
  const idle = cell(state, "last_minute", "usage");
  assert.deepEqual([idle.state, idle.ratio, idle.query, idle.reason], ["idle", null, 0, "idle"]);
});

test("a hit of 0 is a value", () => {
  const zero = cell(rated(opened(), [reading("last_request", "usage", 0, 169, { requests: 1 })]), "last_request", "usage");
  assert.deepEqual([zero.state, zero.ratio], ["value", 0]);
});

test("why there is no reading: not exported, not read, not told, not possible", () => {
  const state = rated(opened(), []);
  const why = (changes, window, basis) => cell(told(state, changes), window, basis).reason;
  assert.equal(why({ not_exported: ["query_tokens", "hit_tokens"] }, "lifetime", "counter"), "not-exported");
  assert.equal(why({ not_exported: [], metrics_state: "failed" }, "lifetime", "counter"), "metrics-failed");
  assert.equal(why({ not_exported: [], metrics_state: "unknown" }, "lifetime", "counter"), "no-counters");
  assert.equal(why({ usage_details: false }, "since_mark", "usage"), "no-usage");
  assert.equal(why({ usage_details: null }, "since_mark", "usage"), "no-answer");
  assert.equal(why({}, "last_request", "counter"), "counters-know-no-request");
  assert.equal(why({}, "lifetime", "inferred"), "began-before-us");
  assert.equal(cell(initialState(), "lifetime", "counter").reason, "no-server");
  const silent = told(initialState(), { streams: [stream({ coverage: "none", state: "off" })] });
  assert.equal(cell(silent, "last_request", "inferred").reason, "no-events");
});

test("a server that has only the ratio's gauge shows it, without parts", () => {
  const state = sampled(told(rated(opened(), []), { not_exported: ["query_tokens", "hit_tokens"] }), { lifetime_hit_ratio: 0.43 });
  const gauge = cell(state, "lifetime", "counter");
  assert.deepEqual([gauge.state, gauge.ratio, gauge.hit, gauge.reason], ["gauge", 0.43, null, "gauge-only"]);
});

test("counters of metrics that can't be read any more say as of when they are", () => {
  const state = rated(opened(), [reading("lifetime", "counter", 40, 100), reading("last_request", "usage", 40, 100)]);
  assert.equal(cell(state, "lifetime", "counter").staleMs, null);
  const failed = told(state, { metrics_state: "failed", metrics_at_ms: 1234 });
  assert.equal(cell(failed, "lifetime", "counter").staleMs, 1234);
  assert.equal(cell(failed, "last_request", "usage").staleMs, null);
});

test("a 0 of counters that latency contradicts is marked; another figure isn't", () => {
  const notices = [{ code: "counter_contradicts_latency", text: "", params: {} }];
  const doubtful = (hit, changes) => cell(told(rated(opened(), [reading("lifetime", "counter", hit, 100)]), changes), "lifetime", "counter").doubtful;
  assert.deepEqual([doubtful(0, { notices }), doubtful(1, { notices }), doubtful(0, { notices: [] })], [true, false, false]);
});

test("several engines have a row each; one has none of its own", () => {
  const point = golden("metrics.sampled").data.point;
  const engines = { 0: { ...point, hit_tokens: 100, query_tokens: 1000 }, 1: { ...point, hit_tokens: 900, query_tokens: 3000, running: null } };
  const rows = engineRows(reduce(opened(), like("metrics.sampled", { engines })));
  assert.deepEqual(rows.map(({ engine, ratio }) => [engine, ratio]), [["0", 0.1], ["1", 0.3]]);
  assert.equal(rows[1].running, null);
  assert.deepEqual(engineRows(reduce(opened(), golden("metrics.sampled"))), []);
  assert.deepEqual(engineRows(initialState()), []);
});

test("forecasts are lower bounds until all history is known", () => {
  const state = rated(opened(), [reading("last_request", "inferred", 128, 169, { requests: 1 }), reading("last_request", "usage", 128, 169)]);
  assert.equal(cell(state, "last_request", "inferred").atLeast, false);
  const partial = told(state, { streams: [stream(), stream({ rank: 1, coverage: "partial" })] });
  assert.equal(cell(partial, "last_request", "inferred").atLeast, true);
  assert.equal(cell(partial, "last_request", "usage").atLeast, false);
});

test("disagreeing readings carry by how much and every known cause; agreement is said only where two have figures", () => {
  const found = { ...golden("hit_rate.updated").data.differences[0], causes: [] };
  const two = [reading("since_mark", "counter", 40, 100), reading("since_mark", "usage", 0, 0)];
  const state = rated(opened(), two, [found]);
  assert.deepEqual(differences(state).map(({ hit, query, requests, causes }) => [hit, query, requests, causes]), [[40, 100, 1, ["elsewhere"]]]);
  assert.equal(agreement(state), "differ");
  assert.deepEqual(differences(rated(state, two, [{ ...found, causes: ["preemption_rereads", "elsewhere"] }]))[0].causes, ["preemption_rereads", "elsewhere"]);
  assert.deepEqual(differences(rated(state, two, [{ ...found, cause: null, causes: [] }]))[0].causes, []);
  assert.equal(agreement(rated(state, two)), null);
  assert.equal(agreement(rated(state, [two[0], reading("since_mark", "usage", 40, 100)])), "agree");
  assert.deepEqual(differences(reduce(state, golden("snapshot"))), []);
});

test("the score of forecasts: none yet, a run of them, the banner, lower bounds", () => {
  const forecasts = { ...server().forecasts, scored: 4, right: 3, wrong_in_a_row: 1, banner: false };
  assert.equal(forecastScore(initialState()).reason, "no-server");
  assert.equal(forecastScore(told(opened(), { forecasts: null })).reason, "no-outcome");
  assert.equal(forecastScore(told(opened(), { forecasts })).ratio, 0.75);
  assert.equal(forecastScore(told(opened(), { forecasts: { ...forecasts, wrong_in_a_row: 3, banner: true } })).banner, true);
  assert.equal(forecastScore(told(opened(), { forecasts, streams: [stream({ coverage: "partial" })] })).lowerBound, true);
  const none = told(opened(), { forecasts: { ...forecasts, scored: 0, right: 0 } });
  assert.deepEqual([forecastScore(none).ratio, forecastScore(none).reason], [null, "no-outcome"]);
});

test("outcomes run from old to new; more than a lower bound is no fault", () => {
  const outcomes = [
    { id: "a", predicted_cached_tokens: 128, cached_tokens: 128 },
    { id: "b", predicted_cached_tokens: 128, cached_tokens: 96 },
    { id: "c", predicted_cached_tokens: 64, cached_tokens: 96 },
    { id: "d", predicted_cached_tokens: 64, cached_tokens: 96, predicted_is_lower_bound: true },
    { id: "e", predicted_cached_tokens: null },
    { id: "f", outcome: null },
  ];
  const state = reduceAll(initialState(), outcomes.map(done));
  assert.deepEqual(forecastRun(state).map(({ id, verdict }) => [id, verdict]), [["a", "right"], ["b", "fewer"], ["c", "more"], ["d", "kept"]]);
  assert.deepEqual(forecastRun(state, 2).map(({ id }) => id), ["c", "d"]);
});

test("the pool's three parts are the reading's, and each unknown one has its reason", () => {
  const parts = { pool_blocks: 1455, held_blocks: 12, cached_blocks: 400, unwritten_blocks: 1043, kv_usage_ratio: 12 / 1455 };
  const full = poolParts(sampled(opened(), parts));
  assert.deepEqual([full.total, full.held, full.cached, full.unwritten, full.atLeast], [1455, 12, 400, 1043, false]);
  const blank = { pool_blocks: null, held_blocks: null, cached_blocks: null, unwritten_blocks: null, kv_usage_ratio: null };
  const bare = poolParts(sampled(told(opened(), { not_exported: ["kv_usage_ratio"] }), blank));
  assert.deepEqual([bare.held, bare.reasons.held, bare.gauge], [null, "not-exported", null]);
  const deaf = poolParts(sampled(told(initialState(), { streams: [] }), { ...parts, cached_blocks: null, unwritten_blocks: null }));
  assert.deepEqual([deaf.held, deaf.cached, deaf.reasons.cached], [12, null, "no-events"]);
  assert.equal(poolParts(sampled(told(opened(), { streams: [stream({ coverage: "partial" })] }), parts)).atLeast, true);
});

test("tiers but the GPU stand apart, their ranks and groups together", () => {
  const group = (medium, copies) => ({ group: 0, medium, kind: null, block_size: 16, blocks: 1, copies, walked: false });
  const ranks = [stream({ groups: [group("GPU", 9), group("CPU", 3)] }), stream({ rank: 1, groups: [group("CPU", 4), group("disk", 2)] })];
  assert.deepEqual(otherTiers(server({ streams: ranks })), [{ medium: "CPU", blocks: 7 }, { medium: "disk", blocks: 2 }]);
  assert.deepEqual(groupsOf(server({ streams: ranks })).map(({ rank }) => rank), [0, 0, 1, 1]);
  assert.deepEqual(otherTiers(null), []);
});

test("what sharing saves is null where it isn't known, and 0 where it is nothing", () => {
  assert.deepEqual(savings(initialState()), { blocks: null, bytes: null, tokens: null, connectorTokens: null });
  const saved = savings(told(opened(), { shared_blocks: 0, shared_bytes: 0, saved_tokens: 1264 }));
  assert.deepEqual([saved.blocks, saved.bytes, saved.tokens], [0, 0, 1264]);
});

test("the block picture is as good as the worst rank's", () => {
  assert.equal(coverageOf(null), "none");
  assert.equal(coverageOf(server({ streams: [] })), "none");
  assert.equal(coverageOf(server({ streams: [stream(), stream({ coverage: "partial" })] })), "partial");
  assert.equal(coverageOf(server({ streams: [stream({ coverage: "none" }), stream({ coverage: "partial" })] })), "none");
  const picture = pictureOf(server({ streams: [stream({ since_ms: 5 }), stream({ since_ms: 9, unconfirmed_clear: true })] }));
  assert.deepEqual(picture, { coverage: "complete", since_ms: 9, unconfirmed: true });
});

test("a stream's health: tones, faults marked, unknown kept, the diagnosis before the message", () => {
  assert.equal(streamTone(stream()), "good");
  assert.equal(streamTone(stream({ coverage: "partial" })), "wait");
  for (const state of ["off", "silent", "disconnected"]) assert.equal(streamTone(stream({ state })), "bad");
  const fields = streamFields(stream({ lost: 4, gaps: 0, batches_per_s: null, replay_available: false })).flatMap((group) => group.fields);
  const named = Object.fromEntries(fields.map((field) => [field.field, field]));
  assert.deepEqual([named.lost.fault, named.gaps.fault, named.batches.fault], [true, false, false]);
  assert.equal(named.batches_per_s.value, null);
  assert.equal(named.replay_available.value, "no");
  assert.equal(diagnosisOf(stream({ diagnosis: null, message: null })), null);
  assert.equal(diagnosisOf(stream({ diagnosis: null, message: "Why." })).text, "Why.");
  const diagnosis = { code: "wrong_port", text: "No.", params: { port: 1 } };
  assert.equal(diagnosisOf(stream({ diagnosis, message: "Why." })), diagnosis);
});

test("the doctor's findings: what needs a person first", () => {
  const finding = (code, status) => ({ code, status, title: code, text: "", flag: null, panels: [], reason: null, params: {} });
  const found = [finding("a", "on"), finding("b", "unknown"), finding("c", "missing"), finding("d", "unsupported"), finding("e", "warning")];
  const report = { status: "missing", servers: [{ server: "x", findings: [] }, { server: "y", findings: found }] };
  const mine = reportOn(report, "y");
  assert.deepEqual(findingsOf(mine).map(({ code }) => code), ["c", "b", "e", "d", "a"]);
  assert.deepEqual(tally(mine), { on: 1, missing: 1, other: 3 });
  assert.equal(reportOn(null, "y"), null);
});
