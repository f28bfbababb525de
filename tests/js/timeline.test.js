/** The timeline: what it shows of a moment is what was shown at that moment, within bounds. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Effects } from "../../static/js/effects.js";
import { createMoments } from "../../static/js/moment.js";
import { LIVE, SPEEDS, createReplay } from "../../static/js/replay.js";
import { createStore } from "../../static/js/store.js";
import { LIMITS, createTimeline, deflate, inflate } from "../../static/js/timeline.js";
import { BUCKET_MS, createTrack } from "../../static/js/track.js";
import { momentAt, spanOf, trackTitle } from "../../static/js/views/timeline.js";
import { golden, goldenNames, like } from "./golden.js";

/** A small generator of pseudo-random numbers from 0 to 1, the same for a seed (mulberry32). */
function randomFrom(seed) {
  let a = seed;
  return () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const START_MS = 1_700_000_000_000;

/** hello, snapshot and then `count` events of all kinds, now and then a snapshot, with times that mostly go forward. */
function sequence(random, count) {
  const kinds = goldenNames.filter((name) => name !== "hello" && name !== "snapshot");
  let at_ms = START_MS;
  const hashes = Array.from({ length: 40 }, (_, i) => `hash-${i}`);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const some = () => Array.from({ length: 1 + Math.floor(random() * 4) }, () => pick(hashes));
  const events = [golden("hello"), golden("snapshot")].map((event) => ({ ...event, at_ms }));
  for (let i = 0; i < count; i++) {
    at_ms += Math.floor(random() * 400) - (random() < 0.1 ? 300 : 0);
    const name = random() < 0.01 ? "snapshot" : pick(kinds);
    const hash = some();
    const copies = hash.map(() => (name === "blocks.removed" ? Math.floor(random() * 2) : 1));
    const data = name.startsWith("blocks.") && name !== "blocks.cleared" ? { hash, copies } : {};
    if (name.startsWith("request.")) data.record = { ...golden(name).data.record, id: `r-${Math.floor(random() * 260)}` };
    events.push(like(name, data, { at_ms, seq: 10 + i }));
  }
  return events;
}

/** Feeds `events` through a store and a timeline as the page does; `shown(moment, state)` after each frame. */
function live(events, { timeline, frame, shown = () => {} }) {
  const store = createStore();
  const now = () => {
    store.apply();
    return store.state;
  };
  let latest = -Infinity;
  events.forEach((event, i) => {
    store.push(event);
    timeline.record(event, JSON.stringify(event), now);
    latest = Math.max(latest, event.at_ms);
    // A frame shows whole moments: what else comes at the same one isn't there yet.
    const next = events[i + 1];
    if (frame() && (next === undefined || next.at_ms > latest)) shown(latest, now());
  });
  return now();
}

const plain = { pack: deflate, unpack: inflate };

async function stateAt(moments, ms) {
  for (let i = 0; i < 10_000; i++) {
    const { state, pending } = moments.at(ms);
    if (pending === null) return state;
    await pending;
  }
  throw new Error("never read");
}

const withoutNothing = (state) => ({ ...state, caches: Object.fromEntries(Object.entries(state.caches).map(([key, cache]) => [key, { ...cache, blocks: [...cache.blocks] }])) });

for (const seed of [1, 2, 3, 4, 5]) {
  test(`the state of a moment is the one shown live at it (sequence ${seed})`, async () => {
    const random = randomFrom(seed);
    const timeline = createTimeline({ ...plain, limits: { ...LIMITS, chapter_ms: 9_000, segment_chars: 4_000 } });
    const seen = [];
    live(sequence(random, 500), { timeline, frame: () => random() < 0.3, shown: (ms, state) => seen.push([ms, state]) });
    assert.ok(timeline.size().chapters > 3 && seen.length > 50);
    const moments = createMoments({ timeline });
    const wanted = [...seen].sort(() => random() - 0.5);
    for (const [ms, state] of [...wanted, ...seen]) {
      assert.deepEqual(withoutNothing(await stateAt(moments, ms)), withoutNothing(state));
    }
  });
}

test("a moment between two events has the state of the first of them, the very same object", async () => {
  const timeline = createTimeline(plain);
  live([...sequence(randomFrom(7), 20), like("blocks.cleared", {}, { at_ms: START_MS + 60_000 })], { timeline, frame: () => false });
  const moments = createMoments({ timeline });
  const one = await stateAt(moments, START_MS + 30_000);
  assert.equal(await stateAt(moments, START_MS + 59_999), one);
  assert.notEqual(await stateAt(moments, START_MS + 60_000), one);
});

test("what grows while the past is shown can be gone to as well", async () => {
  const timeline = createTimeline(plain);
  const events = sequence(randomFrom(8), 60);
  live(events, { timeline, frame: () => false });
  const moments = createMoments({ timeline });
  await stateAt(moments, Infinity);
  const more = like("stream.resynced", {}, { at_ms: START_MS + 90_000, seq: 999 });
  timeline.record(more, JSON.stringify(more), () => assert.fail("no chapter begins here"));
  assert.equal((await stateAt(moments, Infinity)).seq, 999);
  assert.notEqual((await stateAt(moments, START_MS + 89_999)).seq, 999);
});

test("an hour of events keeps a quarter of it, in bounded room", () => {
  const timeline = createTimeline({ pack: async (text) => text.slice(0, text.length / 10), unpack: inflate });
  let state = live(sequence(randomFrom(9), 2), { timeline, frame: () => false });
  for (let at_ms = START_MS; at_ms < START_MS + 3_600_000; at_ms += 200) timeline.record(like("blocks.reused", {}, { at_ms }), "x".repeat(300), () => state);
  const { from_ms, to_ms } = timeline.range();
  assert.equal(to_ms - from_ms, LIMITS.window_ms);
  assert.ok(timeline.size().events <= (5 * (LIMITS.window_ms + 2 * LIMITS.chapter_ms)) / 1000);
});

test("more than the room holds shortens the time, and a clock that goes back begins anew", async () => {
  const timeline = createTimeline({ ...plain, limits: { ...LIMITS, bytes: 60_000, chapter_bytes: 10_000 } });
  const state = live(sequence(randomFrom(10), 2), { timeline, frame: () => false });
  for (let i = 0; i < 1_000; i++) timeline.record(like("blocks.reused", {}, { at_ms: START_MS + i * 10 }), "x".repeat(1_000), () => state);
  assert.ok(timeline.size().bytes <= 72_000, String(timeline.size().bytes));
  assert.ok(timeline.range().from_ms > START_MS + 8_000);
  timeline.record(like("blocks.reused", {}, { at_ms: START_MS - 3_600_000 }), "{}", () => state);
  assert.deepEqual(timeline.range(), { from_ms: START_MS - 3_600_000, to_ms: START_MS - 3_600_000 });
});

test("packing loses nothing, and text that can't be packed is kept as it is", async () => {
  const text = JSON.stringify(sequence(randomFrom(11), 200));
  const packed = await deflate(text);
  assert.ok(packed.length < text.length / 5);
  assert.equal(await inflate(packed), text);
  const timeline = createTimeline({ pack: () => Promise.reject(new Error("no")), unpack: () => assert.fail(), limits: { ...LIMITS, segment_chars: 10 } });
  const last = live(sequence(randomFrom(12), 40), { timeline, frame: () => false });
  assert.deepEqual(withoutNothing(await stateAt(createMoments({ timeline }), Infinity)), withoutNothing(last));
});

function player(count = 60) {
  const timeline = createTimeline(plain);
  live(sequence(randomFrom(13), count), { timeline, frame: () => false });
  const told = [];
  const replay = createReplay({ timeline, moments: createMoments({ timeline }), onChange: (now) => told.push(now), onRead() {} });
  replay.heard(1_000);
  return { replay, timeline, told, end: timeline.range().to_ms };
}

test("the page is live until it is held; it plays on at its speed and comes back where it catches up", () => {
  const { replay, end } = player();
  assert.equal(replay.stateAt(1_000), null);
  replay.toggle(1_500);
  assert.deepEqual(replay.now, { ...LIVE, on: true, ms: end + 500 });
  replay.stateAt(60_000);
  assert.equal(replay.now.ms, end + 500);
  replay.skip(-5_000, 60_000);
  assert.equal(replay.now.ms, end - 4_500);
  replay.toggle(60_000);
  replay.faster(-1, 60_000);
  assert.equal(replay.now.speed, 0.5);
  replay.stateAt(62_000);
  assert.equal(replay.now.ms, end - 3_500);
  for (let i = 0; i < 20; i++) replay.faster(1, 62_000);
  assert.equal(replay.now.speed, SPEEDS.at(-1));
  replay.stateAt(62_000 + 10_000);
  assert.deepEqual(replay.now, LIVE);
});

test("a moment before or behind the timeline is its nearest", () => {
  const { replay, timeline, end } = player();
  replay.seek(-Infinity, 1_000);
  assert.equal(replay.now.ms, timeline.range().from_ms);
  replay.seek(Infinity, 1_000);
  assert.equal(replay.now.ms, end);
});

test("slow motion begins a moment before, and its key ends it", () => {
  const { replay, end } = player();
  replay.slow(1_000);
  assert.deepEqual([replay.now.playing, replay.now.speed, replay.now.ms], [true, 0.1, end - 2_000]);
  replay.slow(1_000);
  assert.equal(replay.now.speed, 1);
});

test("before anything came there is nothing to go to", () => {
  const timeline = createTimeline(plain);
  const replay = createReplay({ timeline, moments: createMoments({ timeline }), onChange: () => assert.fail(), onRead() {} });
  for (const act of [replay.toggle, replay.slow, replay.live, (now) => replay.skip(1, now), (now) => replay.seek(1, now)]) act(0);
  assert.equal(replay.stateAt(5), null);
});

test("effects of the past stand where their own time puts them, forward and back", () => {
  const effects = new Effects();
  const state = { effectSeq: 1, effects: [{ number: 1, at_ms: 10_000, kind: "reused", request: null, hashes: ["a", "b"] }] };
  effects.show(state, 10_155);
  assert.ok(effects.at("a", 0).strength > 0.99);
  assert.equal(effects.at("a", 1e9).strength, effects.at("a", 0).strength);
  assert.equal(effects.wait(0), null);
  effects.show(state, 10_155, { moving: true });
  assert.equal(effects.wait(0), 0);
  effects.show(state, 12_000);
  assert.equal(effects.busy(0), false);
  effects.show(state, 10_028);
  assert.equal(effects.at("b", 0).strength, 0);
  effects.show(state, 9_000);
  assert.equal(effects.busy(0), false);
  assert.deepEqual(effects.take(state, 500), [], "what the past showed isn't played again");
  assert.equal(effects.time(500), 500);
});

test("the strip counts requests, tokens and evictions in stretches, and forgets the oldest", () => {
  const track = createTrack({ window_ms: 60_000 });
  for (const name of goldenNames) track.record(like(name, {}, { at_ms: 100_000 }));
  const { record } = golden("request.finished").data;
  assert.deepEqual(track.buckets(), [
    { at_ms: 100_000, requests: 1, hit: record.cached_tokens, query: record.prompt_tokens, evicted: golden("blocks.removed").data.copies.filter((n) => n === 0).length, cleared: 1 },
  ]);
  track.record(like("request.finished", { record: { ...record, cached_tokens: null } }, { at_ms: 101_000 }));
  assert.equal(track.buckets()[0].query, record.prompt_tokens);
  for (let at_ms = 100_000; at_ms < 400_000; at_ms += 1_000) track.record(like("request.started", {}, { at_ms }));
  assert.ok(track.buckets().length <= 60_000 / BUCKET_MS + 1);
  assert.match(trackTitle([]), /0 requests, — of their prompt tokens reused/);
});

test("a place on the strip is a moment of what there is, up to a quarter of an hour", () => {
  assert.equal(momentAt(200, 200, 1e6, 60_000), 1e6);
  assert.equal(momentAt(-5, 200, 1e6, 60_000), 1e6 - 60_000);
  assert.equal(momentAt(100, 200, 1e6, 60_000), 1e6 - 30_000);
  assert.equal(spanOf({ from_ms: 0 }, 5_000), 60_000);
  assert.equal(spanOf({ from_ms: 0 }, 500_000), 500_000);
  assert.equal(spanOf({ from_ms: 0 }, 5_000_000), LIMITS.window_ms);
});
