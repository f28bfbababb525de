/** The tour: what each step sends, its one number, and the presenter's ways through it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { IDLE } from "../../static/js/composer.js";
import { initialState } from "../../static/js/store.js";
import { STEPS, createTour, digits, numberOf, promptOf, requestsOf } from "../../static/js/tour.js";
import { numberWords } from "../../static/js/views/tour.js";

const PROMPT = { system: "Desk 1. Be brief.", question: "Where is it?" };

test("each step changes what it says, and nothing else", () => {
  assert.deepEqual(requestsOf("cold", PROMPT), requestsOf("warm", PROMPT));
  const { system: front, questions: same } = requestsOf("front", PROMPT);
  assert.equal(front.slice(1), PROMPT.system.slice(1));
  assert.notEqual(front[0], PROMPT.system[0]);
  assert.deepEqual(same, [PROMPT.question]);
  const { system, questions } = requestsOf("end", PROMPT);
  assert.equal(system, PROMPT.system);
  assert.deepEqual(questions, ["Where is ix?"]);
  assert.equal(requestsOf("out", PROMPT).cold, true);
  assert.deepEqual(requestsOf("back", PROMPT).questions, [PROMPT.question, PROMPT.question]);
});

test("the prompt speaks the page's language and begins with a number of its own", () => {
  assert.match(promptOf(4821, "en").system, /^Desk 4821\. You are/);
  assert.match(promptOf(4821, "zh").system, /^窗口 4821/);
});

test("one number a step, unknown until it is known", () => {
  const records = { a: { ttft_ms: 90 }, b: { ttft_ms: 40 }, c: { reused_blocks: 0, prompt_blocks: 14 }, d: { prompt_tokens: 8000 }, e: { prompt_tokens: null } };
  const of = (id) => records[id] ?? null;
  const ids = [["a"], ["b"], ["c"], ["c"], ["d", "e", "d"], ["a", "b"]];
  assert.deepEqual(numberOf("cold", ids, of), { kind: "ms", value: 90, before: null });
  assert.deepEqual(numberOf("warm", ids, of), { kind: "ms", value: 40, before: 90 });
  assert.deepEqual(numberOf("front", ids, of), { kind: "blocks", value: 0, of: 14 });
  assert.deepEqual(numberOf("out", ids, of), { kind: "tokens", value: 16_000 });
  assert.deepEqual(numberOf("out", [[], [], [], [], ["c"]], of, { real: false }), { kind: "blocks", value: 0, of: 14 });
  assert.deepEqual(numberOf("back", ids, of), { kind: "ms", value: 40, before: 90 });
  assert.equal(numberOf("back", [[], [], [], [], [], ["a"]], of).value, null);
  for (const step of STEPS) assert.equal(numberOf(step, [], of).value, null);
  assert.equal(numberWords(numberOf("out", [], of)).value, "—");
  assert.deepEqual(numberWords(numberOf("warm", ids, of)), { value: "40 ms", label: "to the first token, 90 ms before" });
});

test("digits: as many as asked for, also beyond what the browser gives at once", () => {
  assert.match(digits(70_000), /^\d{70000}$/);
});

/** A tour over a stand-in composer; `state` is what the store would hold. */
function made({ state = initialState(), fails = () => false } = {}) {
  const sent = [];
  const composer = {
    run: IDLE,
    stop() {},
    async start(wanted) {
      sent.push(wanted);
      composer.run = fails(sent.length) ? { ...IDLE, phase: "failed", error: "No." } : { ...IDLE, phase: "done", ids: wanted.questions.map((_, i) => `r-${sent.length}-${i}`) };
    },
  };
  let begun = 0;
  const tour = createTour({
    composer, send: async () => {}, show() {}, getState: () => state, language: () => "en", onChange() {}, onStart: () => (begun += 1), number: () => 7,
  });
  return { tour, sent, begun: () => begun };
}

test("next begins, runs each step once and ends; back shows without sending; reset begins anew", async () => {
  const { tour, sent, begun } = made();
  for (let i = 0; i < STEPS.length; i++) await tour.next();
  assert.equal(sent.length, STEPS.length);
  assert.equal(begun(), 1);
  assert.deepEqual(tour.tour.ids.map((ids) => ids.length), [1, 1, 1, 1, 1, 2]);
  await tour.next();
  assert.equal(sent.length, STEPS.length);
  tour.back();
  tour.back();
  assert.equal(tour.tour.step, 3);
  await tour.next();
  assert.equal(tour.tour.step, 4);
  assert.equal(sent.length, STEPS.length);
  await tour.reset();
  assert.equal(tour.tour.step, 0);
  assert.equal(sent.length, STEPS.length + 1);
  tour.close();
  assert.equal(tour.tour.open, false);
});

test("only a demo's pool is really filled; elsewhere the prompt gets a salt of its own", async () => {
  const { tour, sent } = made();
  for (let i = 0; i < 5; i++) await tour.next();
  assert.equal(sent[4].cold, true);
  assert.equal(tour.tour.real, false);
});

test("a step that failed says so, and next tries it again", async () => {
  const { tour, sent } = made({ fails: (n) => n === 2 });
  await tour.next();
  await tour.next();
  assert.equal(tour.tour.phase, "failed");
  assert.equal(tour.tour.error, "No.");
  assert.equal(tour.tour.step, 1);
  await tour.next();
  assert.equal(tour.tour.phase, "idle");
  assert.equal(tour.tour.step, 1);
  assert.equal(sent.length, 3);
});
