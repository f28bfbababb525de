import assert from "node:assert/strict";
import { test } from "node:test";

import { buildRequest, changeEnd, changeStart, createComposer, freshSalt } from "../../static/js/composer.js";
import { PRESETS, presetById, textOf } from "../../static/js/presets.js";

test("the page's own request asks for everything that the picture needs", () => {
  const { body, headers } = buildRequest({ model: "m", system: "s", question: "q" });
  assert.deepEqual(body, {
    model: "m",
    messages: [{ role: "system", content: "s" }, { role: "user", content: "q" }],
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
    vllm_xargs: { kv_cache_report_mode: "full" },
    temperature: 0,
    max_tokens: 64,
  });
  assert.deepEqual(headers, { "X-PrefixScope-Origin": "page" });
});

test("a cold start carries a salt and says so; without a system prompt there is no such message", () => {
  const { body, headers } = buildRequest({ model: "m", system: "", question: "q", salt: "abc" });
  assert.equal(body.cache_salt, "abc");
  assert.equal(headers["X-PrefixScope-Cold"], "1");
  assert.equal(body.messages.length, 1);
  assert.match(freshSalt(), /^[0-9a-f]{32}$/);
  assert.notEqual(freshSalt(), freshSalt());
});

function scripted(send) {
  const runs = [];
  let salts = 0;
  const composer = createComposer({ send, onChange: (run) => runs.push(run), salt: () => `salt-${++salts}` });
  return { composer, runs };
}

test("sends one after the other and keeps their ids", async () => {
  const sent = [];
  const { composer, runs } = scripted(async ({ body, onStart, onText }) => {
    sent.push(body.messages.at(-1).content);
    onStart(`r-${sent.length}`);
    onText("Hel");
    onText("lo");
  });
  await composer.start({ model: "m", system: "s", questions: ["one", "two"], cold: false });
  assert.deepEqual(sent, ["one", "two"]);
  assert.deepEqual(composer.run.ids, ["r-1", "r-2"]);
  assert.equal(composer.run.phase, "done");
  assert.equal(composer.run.answer, "Hello");
  assert.ok(runs.some(({ phase, index }) => phase === "waiting" && index === 1));
});

test("cold: each request its own salt", async () => {
  const salts = [];
  const { composer } = scripted(async ({ body }) => salts.push(body.cache_salt));
  await composer.start({ model: "m", system: "", questions: ["a", "a"], cold: true });
  assert.deepEqual(salts, ["salt-1", "salt-2"]);
});

test("a failure ends the run with its words", async () => {
  const { composer } = scripted(async () => {
    throw new Error("The model `x` does not exist.");
  });
  await composer.start({ model: "x", system: "", questions: ["a", "b"], cold: false });
  assert.equal(composer.run.phase, "failed");
  assert.equal(composer.run.error, "The model `x` does not exist.");
  assert.equal(composer.run.index, 0);
});

test("stop ends the run, and a second start while one runs does nothing", async () => {
  const { composer } = scripted(
    ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("aborted")))),
  );
  const running = composer.start({ model: "m", system: "", questions: ["a", "b"], cold: false });
  await composer.start({ model: "m", system: "", questions: ["c"], cold: false });
  assert.equal(composer.run.question, "a");
  composer.stop();
  await running;
  assert.equal(composer.run.phase, "stopped");
});

test("one letter changes, at the very front or the very end, in any script", () => {
  assert.equal(changeStart("You are"), "Xou are");
  assert.equal(changeStart("  你好。"), "  新好。");
  assert.equal(changeStart("Xou"), "You");
  assert.equal(changeEnd("to its sender."), "to its sendex.");
  assert.equal(changeEnd("线索。\n"), "线新。\n");
  assert.equal(changeEnd("号7"), "号8");
  assert.equal(changeStart("…"), "…");
  for (const system of PRESETS.flatMap(({ text }) => Object.values(text).map((each) => each.system)).filter((text) => text !== "")) {
    for (const changed of [changeStart(system), changeEnd(system)]) {
      assert.equal(changed.length, system.length);
      assert.equal([...changed].filter((letter, i) => letter !== [...system][i]).length, 1);
    }
  }
});

test("the field's own test: five rules, twenty times, eight questions", () => {
  const { system, questions } = textOf(presetById("history"), "en");
  assert.equal(system.match(/^1\. /gm).length, 20);
  assert.equal(system.match(/^5\. /gm).length, 20);
  assert.equal(questions.length, 8);
});
