/** The microscope: what is drawn of a comparison, and what is said of it. And the causes. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { CAUSES, anchorOf, causeOf, explained } from "../../static/js/causes.js";
import { SHAPE_NAMES } from "../../static/js/glossary_drawing.js";
import en from "../../static/js/messages/en.js";
import { firstShown, mapOf, relation, rowsOf, visible, windowStart } from "../../static/js/why/microscope.js";
import { comparisonWords, sectionWords } from "../../static/js/views/why/microscope.js";
import { gradeWords } from "../../static/js/views/why/verdict.js";
import { shownRecord } from "../../static/js/views/try.js";
import { IDLE } from "../../static/js/composer.js";

const token = (start, text, count = 1) => ({ start, count, text, cells: [] });
const answer = (changes = {}) => ({
  request: "r-8",
  block_size: 4,
  prompt_tokens: 10,
  cached_tokens: 4,
  nearest: { request: "r-7", tokens: 9, resident_tokens: 4 },
  common_tokens: 6,
  first_difference: { token: 7, block: 2, section: { kind: "system", role: "system", index: 1 }, text_here: " now", text_there: " then" },
  recomputed: { tokens: 6, about_ms: null, low_ms: null, high_ms: null },
  here: { start: 2, end: 10, groups: [token(2, "a"), token(3, "👋", 2), token(5, "b"), token(6, " now"), token(7, "c"), token(8, "d"), token(9, "e")], text_hidden: false },
  there: { start: 2, end: 9, groups: null, text_hidden: true },
  ...changes,
});

test("tokens stand in their blocks; a glyph over a border in the one where it begins", () => {
  const rows = rowsOf(answer().here, { common: 6, size: 4, cached: 4 });
  assert.deepEqual(rows.map(({ block, groups }) => [block, groups.map(({ start }) => start)]), [[0, [2, 3]], [1, [5, 6, 7]], [2, [8, 9]]]);
  assert.deepEqual(rows.flatMap(({ groups }) => groups.map(({ place }) => place)), ["common", "common", "common", "first", "after", "after", "after"]);
  assert.deepEqual(rows.flatMap(({ groups }) => groups.map(({ kind }) => kind)), ["reused", "reused", ...Array(5).fill("computed")]);
});

test("a glyph that holds the difference is where it is marked", () => {
  const side = { start: 4, end: 8, groups: [token(4, "é", 3), token(7, "x")] };
  assert.deepEqual(rowsOf(side, { common: 5, size: 4 })[0].groups.map(({ place, kind }) => [place, kind]), [["first", null], ["after", null]]);
});

test("hidden text leaves a shape a token", () => {
  const rows = rowsOf(answer().there, { common: 6, size: 4 });
  assert.equal(rows.flatMap(({ groups }) => groups).length, 7);
  assert.ok(rows.every(({ groups }) => groups.every(({ text, count }) => text === null && count === 1)));
});

test("a window begins with a whole block, unless the difference stands in the broken one", () => {
  assert.equal(firstShown(answer()), 4);
  assert.equal(firstShown(answer({ common_tokens: 3 })), 2);
  assert.equal(firstShown(answer({ block_size: null })), 2);
  assert.deepEqual(rowsOf(answer().here, { common: 6, size: 4, from: 4 }).map(({ block }) => block), [0, 1, 2], "the glyph over the border stays whole");
  assert.equal(windowStart(1000, 16), 960);
  assert.equal(windowStart(3, 16), 0);
  assert.equal(windowStart(40, null), 0);
});

test("what has no shape is shown by a mark, and glyphs stay whole", () => {
  assert.equal(visible(" sender"), "·sender");
  assert.equal(visible("\n\n"), "↵↵");
  assert.equal(visible("a b\tc "), "a b⇥c·");
  assert.equal(visible("👩\u200d💻"), "👩\u200d💻");
  assert.equal(visible("\u200d"), "⟨ZWJ⟩");
  assert.equal(visible("مرحبا"), "مرحبا");
  assert.equal(visible(""), "∅");
});

test("the whole prompt in runs; figures that can't be aren't drawn as if they could", () => {
  assert.deepEqual(mapOf(answer()), [{ kind: "reused", tokens: 4 }, { kind: "computed", tokens: 6 }]);
  assert.deepEqual(mapOf(answer({ cached_tokens: 0 })), [{ kind: "computed", tokens: 10 }]);
  for (const cached_tokens of [null, 11]) assert.deepEqual(mapOf(answer({ cached_tokens })), [{ kind: "unknown", tokens: 10 }]);
});

test("the sentences name the other prompt, the difference, its section and the cost", () => {
  assert.deepEqual(comparisonWords(answer()), {
    compared: "Beside request #7, the nearest prompt that was known when it was sent (9 tokens).",
    difference: "The first 6 tokens are the same. Token 7 differs, “·now” here and “·then” there: block 2, in the system prompt.",
    recomputed: "Everything after the last block that is whole and the same was computed: 6 tokens.",
  });
  const cost = { tokens: 6, about_ms: 12, low_ms: 10.2, high_ms: 14 };
  assert.match(comparisonWords(answer({ recomputed: cost })).recomputed, /6 tokens, about 12 ms \(10 ms to 14 ms\)\.$/);
  const hidden = { ...answer().first_difference, text_there: null };
  assert.match(comparisonWords(answer({ first_difference: hidden })).difference, /Token 7 differs: block 2/);
  assert.match(comparisonWords(answer({ nearest: { request: "r-7", tokens: 6 } })).difference, /there that prompt ends\. New from token 7 on/);
  assert.match(comparisonWords(answer({ first_difference: null, common_tokens: 10 })).difference, /^All its 10 tokens/);
  assert.match(comparisonWords(answer({ common_tokens: 0 })).difference, /^They differ from the first token on/);
  const alone = comparisonWords(answer({ nearest: null, there: null, common_tokens: 0 }));
  assert.deepEqual([alone.difference, relation(answer({ nearest: null }))], ["", "nothing"]);
  assert.match(comparisonWords(answer({ nearest: { request: null, tokens: 9 } })).compared, /cached blocks/);
});

test("each kind of section has words", () => {
  for (const kind of ["header", "tools", "system", "message", "generation_prompt"]) assert.match(sectionWords({ kind, role: "user", index: 3 }), /^in /);
  assert.equal(sectionWords({ kind: "message", role: "user", index: 3 }), "in message 3 (user)");
  assert.match(sectionWords(null), /isn't known/);
});

test("every cause has its words, an address and a drawing of known shapes", () => {
  for (const { code, drawing } of CAUSES) {
    for (const part of ["name", "text", "advice"]) assert.ok(en[`cause.${code}.${part}`], `${code}.${part}`);
    assert.equal(causeOf(`#${anchorOf(code)}`), code);
    for (const [shape, x, y] of drawing) assert.ok(SHAPE_NAMES.includes(shape) && x >= 0 && x <= 160 && y >= 0 && y <= 44, code);
  }
  const worded = Object.keys(en).filter((key) => /^cause\..+\.name$/.test(key)).map((key) => key.split(".")[1]);
  assert.deepEqual(worded.sort(), CAUSES.map(({ code }) => code).sort());
  for (const other of ["", "#why-", "#why-nothing", "#glossary-block"]) assert.equal(causeOf(other), null);
  assert.equal(explained({ code: "reused", params: { loss: "evicted" } }), "evicted");
  assert.equal(explained({ code: "full_hit", params: {} }), "full_hit");
});

test("a forecast's grade is one line", () => {
  const grade = { said: 176, came: 176, lower: false, right: true, early_ms: 42, late_ms: 98, ttft_ms: 48, within: true };
  assert.equal(gradeWords(grade), "✓ Forecast 176 cached tokens, came 176. First token forecast 42 ms to 98 ms, came 48 ms.");
  assert.equal(gradeWords({ ...grade, came: 0, right: false, within: null }), "✗ Forecast 176 cached tokens, came 0.");
  assert.match(gradeWords({ ...grade, lower: true, within: null }), /at least 176/);
  assert.equal(gradeWords(null), "");
});

test("while the next request runs, the sentence on the one before it stays", () => {
  const record = (id, verdict) => ({ record: { id, verdict } });
  const state = { requests: { a: record("a", { code: "reused" }), b: record("b", null) } };
  assert.equal(shownRecord(state, { ...IDLE, phase: "streaming", ids: ["a", "b"] }).id, "a");
  assert.equal(shownRecord(state, { ...IDLE, phase: "done", ids: ["a", "b"] }).id, "b");
  assert.equal(shownRecord(state, { ...IDLE, phase: "waiting", ids: [] }), null);
});
