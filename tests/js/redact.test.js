/** Redacted mode: no character of a text is left, and shapes, lengths and everything else stay. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { createRedaction, isRedacted, mask, redactAnswer } from "../../static/js/redact.js";
import { initialState, reduceAll } from "../../static/js/store.js";
import { IDLE } from "../../static/js/composer.js";
import { golden, goldenNames, like } from "./golden.js";

const CANARY = "Zanzibar-Quokka 7 桑给巴尔";

test("length and white space stay, and nothing else", () => {
  assert.equal(mask("Hi 你,\n7!"), "▪▪ ▪▪\n▪▪");
  assert.equal(mask(""), "");
  assert.equal(mask(null), null);
  assert.equal(mask(undefined), null);
});

test("no label and no error of a state is left, and the state stays the same for the same input", () => {
  const record = { ...golden("request.failed").data.record, label: CANARY, error: CANARY };
  let state = reduceAll(initialState(), [...goldenNames.map(golden).sort((a, b) => a.seq - b.seq), like("request.failed", { record })]);
  const redaction = createRedaction();
  const shown = redaction.state(state);
  for (const part of ["Zanzibar", "Quokka"]) assert.ok(!JSON.stringify(shown.requests).includes(part), part);
  assert.ok(!JSON.stringify(shown.requests).includes("桑"));
  assert.equal(shown.requests[record.id].record.label.length, CANARY.length);
  assert.equal(shown.requests[record.id].record.outcome, record.outcome);
  assert.equal(shown.caches, state.caches);
  assert.equal(redaction.state(state), shown);
  const later = redaction.state({ ...state, seq: state.seq + 1 });
  assert.equal(later.requests, shown.requests);
  assert.equal(state.requests[record.id].record.label, CANARY, "the state itself is whole");
});

test("an answer of the API keeps its numbers and loses its words, and so does the page's own run", () => {
  const answer = { depth: 3, text: CANARY, hash: "ab", here: { groups: [{ start: 1, count: 2, text: CANARY, cells: [CANARY, null] }] }, first_difference: { token: 4, text_here: CANARY, text_there: null } };
  const shown = redactAnswer(answer);
  assert.ok(!/[Zz]an|桑/.test(JSON.stringify(shown)));
  assert.deepEqual([shown.depth, shown.hash, shown.here.groups[0].start, shown.here.groups[0].cells[1], shown.first_difference.text_there], [3, "ab", 1, null, null]);
  const run = createRedaction().run({ ...IDLE, question: CANARY, answer: CANARY, error: CANARY, ids: ["r-1"] });
  assert.ok(!/[Zz]an|桑/.test(JSON.stringify(run)));
  assert.deepEqual(run.ids, ["r-1"]);
});

test("it is on by the switch, or because the dashboard shows no text", () => {
  assert.equal(isRedacted({ hello: null }, { redacted: false }), false);
  assert.equal(isRedacted({ hello: null }, { redacted: true }), true);
  assert.equal(isRedacted({ hello: { redact: true } }, { redacted: false }), true);
});
