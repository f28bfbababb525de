/** The presets: complete in both languages, and of the shapes that their lines promise. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { buildRequest, createComposer } from "../../static/js/composer.js";
import { PRESETS, presetById, textOf } from "../../static/js/presets.js";

const LANGUAGES = ["en", "zh"];
const CHINESE = /[\u4e00-\u9fff]/;

test("each has a name, a line on what to watch and texts; all but the field's own in both languages", () => {
  assert.equal(new Set(PRESETS.map(({ id }) => id)).size, PRESETS.length);
  for (const preset of PRESETS) {
    for (const language of LANGUAGES) {
      assert.equal(CHINESE.test(preset.name[language] + preset.watch[language]), language === "zh", preset.id);
      const { questions, system } = textOf(preset, language);
      assert.ok(questions.length >= 4 && new Set(questions).size === questions.length, preset.id);
      if (preset.id !== "history") assert.equal(CHINESE.test(system + questions.join("")), language === "zh", preset.id);
    }
  }
});

test("the control's prompts begin differently, in their first words", () => {
  for (const language of LANGUAGES) {
    const { system, questions } = textOf(presetById("control"), language);
    assert.equal(system, "");
    assert.deepEqual(buildRequest({ model: "m", system, question: "q", bare: presetById("control").bare }).body.messages[0], { role: "system", content: "" });
    const first = questions.map((text) => [...text].slice(0, language === "zh" ? 1 : 6).join(""));
    assert.equal(new Set(first).size, questions.length);
    for (const text of questions) assert.ok(text.length > (language === "zh" ? 60 : 240));
  }
});

test("the agent's tools stand in the request, which doesn't ask for calls", () => {
  const { tools } = presetById("agent");
  const { body } = buildRequest({ model: "m", system: "s", question: "q", tools });
  assert.equal(body.tool_choice, "none");
  assert.deepEqual(body.tools.map(({ type, function: { name, parameters } }) => [type, name, parameters.required.length > 0]), [
    ["function", "find_trains", true],
    ["function", "reserve_seat", true],
    ["function", "weather", true],
    ["function", "send_note", true],
  ]);
  assert.ok(!("tools" in buildRequest({ model: "m", system: "s", question: "q" }).body));
});

test("in a talk each request carries the ones before it, with their answers", async () => {
  const sent = [];
  const composer = createComposer({
    onChange() {},
    async send({ body, onText }) {
      sent.push(body.messages);
      onText(`answer ${sent.length}`);
    },
  });
  await composer.start({ model: "m", system: "s", questions: ["one", "two"], cold: false, turns: true });
  assert.deepEqual(sent[1], [
    { role: "system", content: "s" },
    { role: "user", content: "one" },
    { role: "assistant", content: "answer 1" },
    { role: "user", content: "two" },
  ]);
  assert.equal(sent[0].length, 2);
  await composer.start({ model: "m", system: "s", questions: ["one", "two"], cold: false });
  assert.equal(sent[3].length, 2);
});
