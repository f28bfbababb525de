/** A request step by step: every block goes its way, in the engine's order, whatever the prompt's length and hits. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { cellsOf, computedBy, phaseOf, stepsOf } from "../../static/js/steps.js";
import { factsOfStep, sayStep } from "../../static/js/views/steps.js";
import { golden } from "./golden.js";

/** A request of `tokens` prompt tokens in blocks of `size`, of which `reused` blocks were reused. */
function request(tokens, size, reused, { verdict = null, answer = 1 } = {}) {
  const { record } = golden("request.finished").data;
  const full = Math.floor(tokens / size);
  const tail = tokens % size;
  const state = [...Array(reused).fill("reused"), ...Array(full - reused).fill("computed"), ...(tail ? ["partial"] : []), ...Array(answer).fill("decode")];
  const hash = state.map((what, i) => (what === "partial" ? null : `hash-${i}`));
  const counts = state.map((what) => (what === "partial" ? tail : size));
  return {
    record: { ...record, prompt_tokens: tokens, cached_tokens: reused * size, reused_blocks: reused, verdict: verdict ?? record.verdict },
    table: { block_size: size, hash, tokens: counts, state, basis: "engine" },
  };
}

const phases = (steps) => steps.map(({ phase }) => phase).filter((phase, i, all) => phase !== all[i - 1]);

test("of 169 tokens in blocks of 32 four are found, the fifth isn't, and the rest is computed", () => {
  const steps = stepsOf(request(169, 32, 4));
  assert.deepEqual(phases(steps), ["cut", "hash", "hit", "miss", "touch", "place", "tail", "compute", "answer"]);
  assert.deepEqual(steps.filter(({ phase }) => phase === "miss"), [{ phase: "miss", from: 4, to: 5 }]);
  assert.deepEqual(computedBy(request(169, 32, 4), steps, steps.length - 1), { done: 41, all: 41 });
  assert.equal(computedBy(request(169, 32, 4), steps, 0).done, 0);
});

test("of a prompt of exactly three blocks the last is never looked up", () => {
  const steps = stepsOf(request(96, 32, 2));
  assert.deepEqual(phases(steps), ["cut", "hash", "hit", "cap", "touch", "place", "compute", "answer"]);
  assert.deepEqual(steps.find(({ phase }) => phase === "cap"), { phase: "cap", from: 2, to: 3 });
});

test("where all that can be found is found, the search ends without a miss", () => {
  assert.deepEqual(phases(stepsOf(request(169, 32, 5))), ["cut", "hash", "hit", "touch", "tail", "compute", "answer"]);
  assert.deepEqual(phases(stepsOf(request(20, 32, 0))), ["cut", "tail", "compute", "answer"]);
});

test("where the engine skips the lookup, so do the steps, and they say why", () => {
  const asked = request(169, 32, 0, { verdict: { code: "lookup_skipped", text: "It asked for prompt_logprobs.", detail: null, params: {} } });
  const steps = stepsOf(asked);
  assert.deepEqual(phases(steps), ["cut", "hash", "skip", "place", "tail", "compute", "answer"]);
  assert.match(sayStep(asked, steps.find(({ phase }) => phase === "skip")), /prompt_logprobs/);
});

test("a table without the part that fills no block is completed from the prompt's length", () => {
  const whole = request(169, 32, 4, { answer: 0 });
  const { hash, tokens, state } = whole.table;
  const cut = { ...whole, table: { ...whole.table, hash: hash.slice(0, 5), tokens: tokens.slice(0, 5), state: state.slice(0, 5) } };
  assert.deepEqual(stepsOf(cut), stepsOf(whole));
  assert.equal(computedBy(cut, [], 0).all, 41);
});

test("too little known: no steps", () => {
  const whole = request(169, 32, 4);
  assert.deepEqual(stepsOf({ ...whole, table: null }), []);
  assert.deepEqual(stepsOf({ ...whole, record: { ...whole.record, prompt_tokens: null } }), []);
  assert.deepEqual(stepsOf({ ...whole, table: { ...whole.table, state: [], hash: [], tokens: [] } }), []);
});

test("whatever the length: steps stay few, cells tile the prompt, each block ends touched or computed, and all have words", () => {
  for (const size of [1, 16, 32]) {
    for (const tokens of [1, 5, 16, 31, 32, 33, 64, 169, 1600, 100_000]) {
      const most = Math.floor((tokens - 1) / size);
      for (const reused of new Set([0, 1, Math.floor(most / 2), most].filter((n) => n <= most))) {
        const one = request(tokens, size, reused);
        const steps = stepsOf(one);
        const cells = cellsOf(steps);
        const blocks = Math.ceil(tokens / size);
        assert.ok(steps.length < 60 && cells.length < 40, `${tokens} of ${size}: ${steps.length} steps, ${cells.length} cells`);
        assert.equal(cells[0].from, 0);
        assert.equal(cells.at(-1).to, blocks);
        cells.slice(1).forEach((cell, i) => assert.equal(cell.from, cells[i].to));
        for (const { from, to } of cells) assert.equal(phaseOf(steps, steps.length - 1, from), to <= reused ? "touch" : "compute");
        assert.equal(computedBy(one, steps, steps.length - 1).done, tokens - reused * size);
        steps.forEach((step, at) => {
          for (const text of [sayStep(one, step), ...factsOfStep(one, steps, at, new Map()).flat()]) assert.ok(!/steps\.|undefined|NaN|\{/.test(text), text);
        });
      }
    }
  }
});
