/** Glossary and info buttons: each term and topic has words and a place on the page, and nothing has none. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { TERMS } from "../../static/js/glossary.js";
import { SHAPE_NAMES } from "../../static/js/glossary_drawing.js";
import en from "../../static/js/messages/en.js";
import { hasWords } from "../../static/js/words.js";
import { termOf } from "../../static/js/views/glossary.js";
import { termsOf } from "../../static/js/views/info.js";

const ROOT = new URL("../../", import.meta.url).pathname;
const textBelow = (folder) => readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => /\.(js|html)$/.test(name)).map((name) => readFileSync(join(ROOT, folder, name), "utf8")).join("\n");

test("every term has a name, words and a drawing of known shapes within its field; no words are without a term", () => {
  const ids = TERMS.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length);
  for (const { id, drawing } of TERMS) {
    for (const part of ["name", "text"]) assert.ok(hasWords(`glossary.${id}.${part}`), `${id}.${part}`);
    assert.ok(drawing.length > 0, id);
    for (const [shape, x, y] of drawing) {
      assert.ok(SHAPE_NAMES.includes(shape), `${id}: ${shape}`);
      assert.ok(x >= 0 && x <= 160 && y >= 0 && y <= 44, id);
    }
  }
  const worded = Object.keys(en).filter((key) => /^glossary\..+\.name$/.test(key)).map((key) => key.slice("glossary.".length, -".name".length));
  assert.deepEqual(worded.sort(), [...ids].sort());
});

test("every info button has all its words, and every topic a button", () => {
  const used = new Set([...(textBelow("templates") + textBelow("static/js")).matchAll(/(?:data-info="|infoButton\("|\b(?:info|topic): ")([a-z][\w-]*)"/g)].map(([, topic]) => topic));
  const worded = Object.keys(en).filter((key) => /^info\..+\.name$/.test(key)).map((key) => key.slice("info.".length, -".name".length));
  assert.deepEqual([...used].sort(), worded.sort());
  for (const topic of used) for (const part of ["name", "what", "window", "source", "formula"]) assert.ok(hasWords(`info.${topic}.${part}`), `${topic}.${part}`);
});

test("a term's topics exist", () => {
  for (const { id, topics = [] } of TERMS) for (const topic of topics) assert.ok(hasWords(`info.${topic}.name`), `${id}: ${topic}`);
  assert.ok(termsOf("hit-rate").includes("hit-rate"));
});

test("an address's fragment names a term, the glossary, or something else", () => {
  assert.equal(termOf("#glossary-block"), "block");
  assert.equal(termOf("#glossary"), "");
  for (const other of ["", "#try", "#glossary-nothing", "#glossary-"]) assert.equal(termOf(other), null);
});
