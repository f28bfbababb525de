/** The prompt doctor: what is made of pasted text, how an examination goes, and what is said of its report. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { UNEXAMINED, createExamining } from "../../static/js/why/examining.js";
import { isJsonLines, linesOf, promptsOf, requestsAt } from "../../static/js/why/prompt_list.js";
import { examplePrompts, reportWords } from "../../static/js/views/why/prompts.js";

const report = (changes = {}) => ({
  requests: 3, left_out: 0, block_size: 16, num_gpu_blocks: 5306, prompt_tokens: 707, hit_tokens: 48, hit_ratio: 48 / 707,
  unbounded_hit_tokens: 48, fixed_hit_tokens: 416, breakers: [{}], unreadable_lines: [], ...changes,
});

test("prompts are divided by lines of dashes, whatever the line ends; dashes within a line divide nothing", () => {
  assert.deepEqual(promptsOf("one\r\ntwo\r\n---\r\n\r\nthree -- --- four\n-----\n\n"), ["one\ntwo", "three -- --- four"]);
  assert.deepEqual(promptsOf(" \n---\n"), []);
  for (const tag of ["en", "zh"]) assert.equal(promptsOf(examplePrompts(tag)).length, 3);
});

test("pasted prompts become requests; JSON lines stay as they are", () => {
  const lines = linesOf("a\n---\nb \"c\"", "m").split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(lines, ["a", 'b "c"'].map((content) => ({ model: "m", messages: [{ role: "user", content }] })));
  const json = '\n{"messages": []}\nnot json';
  assert.ok(isJsonLines(json));
  assert.equal(linesOf(json, "m"), json);
});

test("a report's numbers count requests, not lines", () => {
  const lines = '\n{"messages": [1]}\r\nnot json\n[1]\n{"body": {"prompt": "b"}}\n{"other": 1}\nnull\n{"messages": [3]}';
  assert.deepEqual(requestsAt(lines, [1, 0]), [{ prompt: "b" }, { messages: [1] }]);
  assert.deepEqual(requestsAt(lines, [2, 9]), [{ messages: [3] }, null]);
});

test("progress, then the report; a stream that breaks off is a failure", async () => {
  const seen = [];
  const ask = async (lines, { onLine }) => {
    onLine({ stage: "tokenise", done: 20, total: 40 });
    seen.push(examining.state.done);
    if (lines === "whole") onLine({ report: report() });
    if (lines === "error") onLine({ error: { code: "x", message: "Too long." } });
  };
  const examining = createExamining({ ask, onChange: () => {} });
  await examining.start("whole");
  assert.deepEqual([examining.state.phase, examining.state.report.requests, examining.state.lines], ["done", 3, "whole"]);
  await examining.start("error");
  assert.deepEqual([examining.state.phase, examining.state.error, examining.state.report], ["failed", "Too long.", null]);
  await examining.start("broken");
  assert.deepEqual([examining.state.phase, examining.state.error], ["failed", null]);
  assert.deepEqual(seen, [20, 20, 20]);
});

test("what is cancelled ends as cancelled, and says nothing more", async () => {
  let tell;
  const ask = (_, { signal, onLine }) => new Promise((_done, refuse) => {
    tell = onLine;
    signal.addEventListener("abort", () => refuse(new Error("aborted")));
  });
  const examining = createExamining({ ask, onChange: () => {} });
  assert.equal(examining.state, UNEXAMINED);
  const first = examining.start("a");
  examining.cancel();
  await first;
  assert.equal(examining.state.phase, "cancelled");
  const stale = tell;
  const second = examining.start("b");
  stale({ report: report() });
  assert.equal(examining.state.phase, "working");
  examining.cancel();
  await second;
});

test("a report in words: the rate, what fixes gain, the pool, what was left out", () => {
  assert.deepEqual(reportWords(report()), {
    now: "Of 707 prompt tokens 48 would be found cached: 6.8 %.",
    fixed: "With every fix: 416, which is 58.8 %.",
    pool: "3 requests one at a time, in a pool of 5,306 blocks of 16 tokens that begins empty. In a pool that never evicts: 48 tokens.",
    left: "",
  });
  assert.match(reportWords(report({ fixed_hit_tokens: 48 })).fixed, /No mechanical fix/);
  assert.match(reportWords(report({ fixed_hit_tokens: null, breakers: [] })).fixed, /Nothing known breaks/);
  assert.match(reportWords(report({ left_out: 1 })).left, /^1 request was left out/);
  assert.match(reportWords(report({ hit_ratio: null, prompt_tokens: 0, hit_tokens: 0 })).now, /: —\.$/);
});
