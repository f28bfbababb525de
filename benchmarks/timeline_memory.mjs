/**
 * What ten minutes of 20 block events and 5 requests a second add to the page's heap: store and timeline, no page.
 * `node --expose-gc benchmarks/timeline_memory.mjs`; bar: 20 MiB. Half the blocks turn over each second or so, all of them
 * many times, so that each kept state has blocks of its own.
 */

import { readFileSync } from "node:fs";

import { createMoments } from "../static/js/moment.js";
import { createStore } from "../static/js/store.js";
import { createTimeline, deflate, inflate } from "../static/js/timeline.js";

const golden = (name) => JSON.parse(readFileSync(new URL(`../tests/contract/golden/${name}.json`, import.meta.url)));
const BLOCKS = 5_306;
const CHAIN = 40;
const SECONDS = 600;
const hex = () => Array.from({ length: 16 }, () => Math.floor(Math.random() * 16).toString(16)).join("");

const store = createStore();
const timeline = createTimeline({ pack: deflate, unpack: inflate });
const chains = [];
let at_ms = 1_700_000_000_000;
let requests = 0;

function take(name, data) {
  // As from the socket: text of its own, and everything made anew from it.
  const text = JSON.stringify({ ...golden(name), at_ms, data });
  const event = JSON.parse(text);
  store.push(event);
  timeline.record(event, text, () => {
    store.apply();
    return store.state;
  });
}

function store_chain() {
  const hash = Array.from({ length: CHAIN }, hex);
  chains.push(hash);
  take("blocks.stored", { ...golden("blocks.stored").data, hash, copies: hash.map(() => 1), parent: null, depth: 0, tokens: 16 });
}

function second() {
  for (let i = 0; i < 5; i++) {
    const gone = chains.shift();
    take("blocks.removed", { ...golden("blocks.removed").data, hash: gone, copies: gone.map(() => 0) });
    store_chain();
    for (let j = 0; j < 2; j++) take("blocks.reused", { request: `r-${requests}`, hash: chains[(i * 7 + j) % chains.length].slice(0, CHAIN / 2) });
    const hash = chains.at(-1);
    requests += 1;
    const table = { block_size: 16, hash, tokens: hash.map(() => 16), state: hash.map(() => "computed"), basis: "engine" };
    for (const name of ["request.started", "request.joined", "request.finished"]) {
      const { data } = golden(name);
      take(name, { ...data, record: { ...data.record, id: `r-${requests}` }, ...(name === "request.started" ? {} : { block_table: table }) });
    }
    at_ms += 200;
  }
  store.apply();
}

const settle = () => new Promise((done) => setTimeout(done, 50));
const heap = async () => {
  await settle();
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return (heapUsed + arrayBuffers) / 2 ** 20;
};

take("hello", golden("hello").data);
take("snapshot", { ...golden("snapshot").data });
while (chains.length * CHAIN < BLOCKS) store_chain();
for (let i = 0; i < 45; i++) second();
const before = await heap();
for (let i = 0; i < SECONDS; i++) {
  second();
  if (i % 20 === 0) await settle();
}
const grown = (await heap()) - before;
const { bytes, chapters, events } = timeline.size();
console.log(`${grown.toFixed(1)} MiB in ${SECONDS / 60} minutes (bar 20): ${events} events in ${(bytes / 2 ** 20).toFixed(1)} MiB packed, ${chapters} kept states`);
const moments = createMoments({ timeline });
const { from_ms, to_ms } = timeline.range();
for (const ms of [from_ms + 1, (from_ms + to_ms) / 2, to_ms]) {
  const begun = performance.now();
  for (let answer = moments.at(ms); answer.pending; answer = moments.at(ms)) await answer.pending;
  console.log(`${((to_ms - ms) / 1000).toFixed(0)} s back: shown after ${(performance.now() - begun).toFixed(0)} ms`);
}
process.exitCode = grown > 20 ? 1 : 0;
