/** Both catalogues say everything that the page says, and nothing else; the template's English is the catalogue's. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";

import * as format from "../../static/js/format.js";
import en from "../../static/js/messages/en.js";
import zh from "../../static/js/messages/zh.js";
import { firstLanguage, hasWords, serversWords, t, useLanguage, verdictWords } from "../../static/js/words.js";
import { golden } from "./golden.js";

const ROOT = new URL("../../", import.meta.url).pathname;
const filesBelow = (folder, end) => readdirSync(join(ROOT, folder), { recursive: true }).filter((name) => name.endsWith(end)).map((name) => join(folder, name));
const read = (name) => readFileSync(join(ROOT, name), "utf8");
const code = filesBelow("static/js", ".js").filter((name) => !name.includes("/messages/")).map((name) => ({ name, text: read(name) }));
const pages = filesBelow("templates", ".html").map((name) => ({ name, text: read(name) }));

const formsOf = (message) => (typeof message === "string" ? [message] : Object.values(message));
const namesIn = (message) => [...new Set(formsOf(message).flatMap((form) => [...form.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)))].sort();

/** Keys that code and templates name, and the fixed beginnings of those made of data. */
function keysInUse() {
  const whole = new Map();
  const beginnings = new Map();
  for (const { name, text } of code) {
    for (const [, key] of text.matchAll(/["'`]([a-z][\w-]*\.[\w.-]+)["'`]/g)) if (hasWords(key)) whole.set(key, name);
    for (const [, key] of text.matchAll(/\bt\(\s*["']([^"']+)["']/g)) whole.set(key, name);
    for (const [, start] of text.matchAll(/`([a-z][\w-]*\.[\w.-]*)\$\{/g)) beginnings.set(start, name);
  }
  for (const { name, text } of pages) for (const [, key] of text.matchAll(/data-t(?:-\w+)?="([^"]+)"/g)) whole.set(key, name);
  return { whole, beginnings: [...beginnings.keys()] };
}

afterEach(() => useLanguage("en"));

test("both languages have the same keys with the same names in them, and no word is missing", () => {
  assert.deepEqual(Object.keys(zh), Object.keys(en));
  for (const key of Object.keys(en)) {
    assert.deepEqual(namesIn(zh[key]), namesIn(en[key]), key);
    for (const form of [...formsOf(en[key]), ...formsOf(zh[key])]) assert.ok(form.trim() !== "", key);
    if (typeof en[key] !== "string") assert.ok(en[key].one && en[key].other && namesIn(en[key]).includes("n"), key);
    assert.ok(!/[\u3000-\u9fff]/.test(formsOf(en[key]).join("")), `${key} is Chinese in the English catalogue`);
  }
});

test("no key stands in two files of a language", () => {
  for (const language of ["en", "zh"]) {
    const keys = filesBelow(`static/js/messages/${language}`, ".js").flatMap((name) => [...read(name).matchAll(/^ {2}"([^"]+)":/gm)].map(([, key]) => key));
    assert.equal(keys.length, Object.keys(en).length);
    assert.equal(new Set(keys).size, keys.length);
  }
});

test("every key that is used has words, and all words are used", () => {
  const { whole, beginnings } = keysInUse();
  for (const [key, name] of whole) assert.ok(hasWords(key), `${name} asks for ${key}`);
  const used = (key) => whole.has(key) || beginnings.some((start) => key.startsWith(start));
  assert.deepEqual(Object.keys(en).filter((key) => !used(key)), []);
});

test("the template's English is the catalogue's", () => {
  const plain = (html) => html.replaceAll(/<!--.*?-->/gs, "").replaceAll(/\s+/g, " ").trim();
  let compared = 0;
  for (const { name, text } of pages) {
    for (const [, tag, key, inner] of text.matchAll(/<(\w+)\b[^>]*\bdata-t="([^"]+)"[^>]*>(.*?)<\/\1>/gs)) {
      const slotted = inner.replaceAll(/<(\w+)\b[^>]*data-slot="(\w+)"[^>]*>.*?<\/\1>/gs, "{$2}");
      assert.equal(plain(slotted), formsOf(en[key])[0], `${name}: <${tag}> ${key}`);
      compared += 1;
    }
    for (const [whole, mark, key] of text.matchAll(/data-t-(label|title)="([^"]+)" (?:aria-label|title)="[^"]*"/g)) {
      assert.ok(whole.endsWith(`${mark === "label" ? "aria-label" : "title"}="${en[key]}"`), `${name}: ${key}`);
      compared += 1;
    }
    assert.equal((text.match(/data-t-(label|title)=/g) ?? []).length, (text.match(/data-t-(label|title)="[^"]+" (aria-label|title)=/g) ?? []).length, name);
  }
  assert.ok(compared > 60);
});

test("words take numbers as they are written, choose the form, and show the unknown as a dash", () => {
  assert.equal(t("unit.blocks", { n: 1 }), "1 block");
  assert.equal(t("unit.blocks", { n: 5306 }), "5,306 blocks");
  assert.equal(t("unit.blocks", { n: null }), "— blocks");
  assert.equal(t("strip.server-title", { id: "{state}", state: "<b>up" }), "{state}: <b>up");
  assert.equal(t("no.such-key"), "no.such-key");
  useLanguage("zh");
  assert.equal(t("unit.blocks", { n: 5306 }), "5,306 个块");
  assert.equal(format.percent(0.924), "92.4%");
  assert.equal(format.duration(1274), "1.27 s");
  assert.equal(format.age(0, 20_000), "20 秒前");
  assert.equal(format.basisName("usage"), "响应中的 usage");
  useLanguage("fr");
  assert.equal(t("unit.blocks", { n: 2 }), "2 blocks");
});

test("the language to begin with: what was chosen, else the browser's first that the page speaks", () => {
  assert.equal(firstLanguage("zh", ["en-GB"]), "zh");
  assert.equal(firstLanguage(null, ["fr-FR", "zh-TW", "en"]), "zh");
  assert.equal(firstLanguage(null, ["de"]), "en");
  assert.equal(firstLanguage("constructor", []), "en");
});

test("a server's own sentence stands alone in English, behind the catalogue's in Chinese", () => {
  assert.equal(serversWords("Out of memory.", "error.overloaded"), "Out of memory.");
  assert.equal(serversWords(null, "error.overloaded"), en["error.overloaded"]);
  useLanguage("zh");
  assert.equal(serversWords("Out of memory.", "error.overloaded"), `${zh["error.overloaded"]}（Out of memory.）`);
  assert.equal(serversWords(null, "error.overloaded"), zh["error.overloaded"]);
  assert.equal(serversWords("Out of memory.", "error.that-nobody-knows"), "Out of memory.");
  assert.equal(serversWords(null, "error.that-nobody-knows"), "");
});

test("a verdict in the page's language where it has one", () => {
  const { verdict } = golden("request.finished").data.record;
  const both = { ...verdict, translations: { zh: ["复用了 6 个块中的 4 个。", null] } };
  assert.equal(verdictWords(both).text, verdict.text);
  useLanguage("zh");
  assert.deepEqual(verdictWords(both), { text: "复用了 6 个块中的 4 个。", detail: null });
  assert.equal(verdictWords({ ...verdict, translations: null }).text, verdict.text);
  assert.equal(verdictWords({ ...verdict, translations: {} }).detail, verdict.detail);
});
