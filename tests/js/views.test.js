/** The parts of the views that decide and don't draw. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Effects, strength } from "../../static/js/effects.js";
import { backoff, createPosition, liveUrl } from "../../static/js/connection.js";
import { IDLE } from "../../static/js/composer.js";
import { initialState, reduce } from "../../static/js/store.js";
import { initialUi } from "../../static/js/ui_state.js";
import { countText, laneLabel } from "../../static/js/views/lanes.js";
import { noticesFor } from "../../static/js/views/notices.js";
import { streamSummary } from "../../static/js/views/strip.js";
import { sentence } from "../../static/js/views/try.js";
import { golden, like } from "./golden.js";

const server = (changes = {}) => ({ ...golden("server.changed").data.server, ...changes });
const stream = (changes) => [{ ...server().streams[0], ...changes }];
const record = (changes = {}) => ({ ...golden("request.finished").data.record, ...changes });
const keys = (...args) => noticesFor(...args).map(({ key }) => key);

test("a healthy server has no notice; each fault has one, with the flag that mends it", () => {
  const ui = initialUi();
  assert.deepEqual(keys(null, ui), []);
  assert.deepEqual(keys(server(), ui), []);
  for (const state of ["down", "not_vllm", "unauthorized"]) assert.deepEqual(keys(server({ state, message: "Why." }), ui), ["server"]);
  assert.equal(noticesFor(server({ state: "down", message: "Start it." }), ui)[0].text, "Start it.");
  for (const state of ["off", "silent", "disconnected"]) assert.deepEqual(keys(server({ streams: stream({ state }) }), ui), ["events"]);
  assert.match(noticesFor(server({ streams: stream({ state: "off" }) }), ui)[0].flag, /^--kv-events-config/);
  const { flag } = noticesFor(server({ streams: stream({ state: "off" }) }), ui)[0];
  const message = `It is silent. Start vLLM with ${flag}, or give the right address.`;
  const [told] = noticesFor(server({ streams: stream({ state: "off", message }) }), ui);
  assert.equal(told.text, "It is silent. Start vLLM with the flag below, or give the right address.");
  assert.match(noticesFor(server({ usage_details: false }), ui)[0].flag, /enable-prompt-tokens-details/);
  assert.deepEqual(keys(server({ prefix_caching: false, metrics_state: "failed" }), ui), ["caching", "metrics"]);
  const forecasts = { ...server().forecasts, wrong_in_a_row: 3, banner: true };
  const notices = [{ code: "clear_storm", text: "Again.", params: {} }, { code: "new_one", text: "New.", params: {} }];
  assert.deepEqual(keys(server({ forecasts, notices, asleep: true }), ui), ["asleep", "forecasts", "clear_storm", "new_one"]);
  assert.deepEqual(noticesFor(server({ notices }), ui).map(({ text }) => text), ["Again.", "New."]);
  assert.deepEqual(keys(server(), { ...ui, mismatch: "v 2." }), ["mismatch"]);
});

test("the event streams in a word, the worst first", () => {
  assert.equal(streamSummary(server(), 0).text, "events live");
  assert.equal(streamSummary(server({ streams: stream({ gaps: 1 }) }), 0).text, "events live · 1 gap");
  assert.equal(streamSummary(server({ streams: stream({ state: "off" }) }), 0).tone, "bad");
  assert.equal(streamSummary(server({ streams: stream({ lost: 4 }) }), 0).text, "events live · 4 lost");
  assert.equal(streamSummary(server({ streams: [] }), 0).tone, "wait");
  assert.equal(streamSummary(server({ streams: stream({ coverage: "partial" }) }), 0).text, "events live · partial picture");
});

test("lanes say N of M, or what came instead", () => {
  assert.equal(countText(record()), "4 of 6");
  assert.equal(countText(record({ reused_blocks: null })), "— of 6");
  assert.equal(countText(record({ outcome: null, prompt_blocks: null })), "…");
  assert.equal(countText(record({ outcome: "http_error", status: 404 })), "error 404");
  assert.equal(countText(record({ outcome: "client_gone" })), "client left");
  assert.equal(
    laneLabel(record({ ttft_ms: null, engine_ttft_ms: 20.4 })),
    "Request #8, Where is my parcel?: 4 of 6 blocks reused, first token after 20 ms by the server's clock",
  );
  assert.match(laneLabel(record({ ttft_ms: null, engine_ttft_ms: null })), /first token after —$/);
  assert.equal(laneLabel(record()), "Request #8, Where is my parcel?: 4 of 6 blocks reused, first token after 34 ms");
});

test("the sentence is the dashboard's; without one the page says what it waits for", () => {
  assert.equal(sentence({ ...IDLE, phase: "done" }, record()).text, "Reused 4 of 6 blocks. First token after 34 ms instead of 73 ms.");
  assert.equal(sentence({ ...IDLE, phase: "done" }, record()).tone, "warm");
  assert.equal(sentence({ ...IDLE, phase: "waiting" }, null).text, "…");
  assert.equal(sentence({ ...IDLE, phase: "failed", error: "No." }, null).detail, "No.");
});

test("effects are functions of time: they begin in a wave, end, and what was before the page isn't played", () => {
  const effects = new Effects();
  let state = reduce(reduce(initialState(), golden("snapshot")), golden("blocks.reused"));
  effects.take(state, 1000);
  const [first, , third] = golden("blocks.reused").data.hash;
  assert.equal(effects.at(first, 1000).strength, 0);
  assert.equal(effects.at(third, 1000), null);
  assert.ok(effects.at(first, 1150).strength > 0.8);
  assert.ok(effects.at(third, 1150).strength > 0);
  assert.equal(effects.at(first, 5000), null);
  assert.equal(effects.busy(1150), true);
  assert.equal(effects.busy(5000), false);
  assert.deepEqual(effects.take(state, 6000), []);
  state = reduce(state, like("blocks.stored", { hash: ["n1", "n2"], copies: [1, 1] }));
  assert.equal(effects.take(state, 7000).length, 1);
  assert.equal(effects.at("n2", 7001).kind, "unborn");
  for (const kind of ["reused", "stored", "removed"]) {
    for (let p = 0; p <= 1; p += 0.05) assert.ok(strength(kind, p) >= 0 && strength(kind, p) <= 1);
  }
});

test("with reduced motion all blocks of an effect are marked at once and evenly", () => {
  const effects = new Effects();
  effects.take(reduce(initialState(), golden("blocks.reused")), 0, { still: true });
  const strengths = golden("blocks.reused").data.hash.map((hash) => effects.at(hash, 300, { still: true }).strength);
  assert.equal(new Set(strengths).size, 1);
});

test("the live address is relative, secure where the page is, and names the position", () => {
  assert.equal(liveUrl("http://127.0.0.1:8080/", null), "ws://127.0.0.1:8080/live");
  assert.equal(liveUrl("https://x.example/scope/?a=1#b", { seq: 7, instance: "i&1" }), "wss://x.example/scope/live?after=7&instance=i%261");
});

test("the wait before a retry grows, is bounded and jitters", () => {
  assert.equal(backoff(1, 0), 400);
  assert.equal(backoff(1, 1), 200);
  assert.equal(backoff(3, 0), 1600);
  assert.equal(backoff(50, 0), 10_000);
});

test("the position is known from the first snapshot on, and only within one run", () => {
  const position = createPosition();
  position.follow(golden("hello"));
  assert.equal(position.get(), null);
  position.follow(golden("snapshot"));
  position.follow(golden("request.started"));
  assert.deepEqual(position.get(), { instance: "5f3a", seq: 3 });
  position.follow(golden("hello"));
  assert.deepEqual(position.get(), { instance: "5f3a", seq: 3 });
  position.follow(like("hello", { instance: "new" }));
  assert.equal(position.get(), null);
});
