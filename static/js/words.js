/**
 * The page's words: `t(key, params)` from the catalogue of the language that is on. Text with {names} in it takes
 * `params`; numbers among them are formatted, null is a dash. A message of forms ({one, other}) is chosen by `params.n`.
 * One language is on at a time; whoever switches it has everything drawn anew (appearance.js).
 */

import en from "./messages/en.js";
import zh from "./messages/zh.js";
import { UNKNOWN, count } from "./numerals.js";

/** By the tag that is remembered: `lang` for the document, `short` on the switch, `messages`. */
export const LANGUAGES = {
  en: { lang: "en", short: "EN", messages: en, plurals: new Intl.PluralRules("en") },
  zh: { lang: "zh-Hans", short: "中文", messages: zh, plurals: new Intl.PluralRules("zh") },
};

let current = "en";

export const language = () => current;

/** Switches to `tag`; another than the known ones is English. */
export function useLanguage(tag) {
  current = Object.hasOwn(LANGUAGES, tag) ? tag : "en";
}

/** The language to begin with: what was chosen here before, else the first of the browser's that the page speaks. */
export function firstLanguage(chosen, preferred) {
  if (Object.hasOwn(LANGUAGES, chosen ?? "")) return chosen;
  const spoken = preferred.map((tag) => tag.toLowerCase().split("-")[0]);
  return spoken.find((tag) => Object.hasOwn(LANGUAGES, tag)) ?? "en";
}

/** Whether there are words for `key`: for keys made of what a server says. */
export const hasWords = (key) => Object.hasOwn(LANGUAGES.en.messages, key);

/** The words for `key`; the key itself where there are none. */
export function t(key, params = {}) {
  return template(key, params).replace(/\{(\w+)\}/g, (_, name) => written(params[name]));
}

function template(key, params) {
  const { messages, plurals } = LANGUAGES[current];
  const found = messages[key] ?? LANGUAGES.en.messages[key] ?? key;
  return typeof found === "string" ? found : (found[plurals.select(params.n ?? 0)] ?? found.other);
}

function written(value) {
  if (value === null || value === undefined) return UNKNOWN;
  return typeof value === "number" ? count(value) : String(value);
}

/**
 * A server's own sentence, which is English: in another language the catalogue's words for it come first, where there
 * are any. `sentence` may be null.
 */
export function serversWords(sentence, key) {
  if (!hasWords(key)) return sentence ?? "";
  if (!sentence) return t(key);
  return current === "en" ? sentence : t("page.in-its-words", { said: t(key), own: sentence });
}

/** {text, detail} of a verdict in the page's language; English, which every verdict has, where it has no other. */
export function verdictWords(verdict) {
  const [text, detail] = verdict.translations?.[current] ?? [verdict.text, verdict.detail];
  return { text, detail: detail ?? null };
}

/**
 * Puts the words into what the template wrote in English: `data-t="key"` is an element's text, `data-t-title` and the
 * like its attributes. Children with `data-slot="name"` stand where the text says {name}, whatever the word order.
 */
export function translate(root) {
  for (const node of root.querySelectorAll("[data-t]")) fill(node, node.dataset.t);
  for (const [mark, attribute] of [["data-t-label", "aria-label"], ["data-t-title", "title"]]) {
    for (const node of root.querySelectorAll(`[${mark}]`)) node.setAttribute(attribute, t(node.getAttribute(mark)));
  }
}

function fill(node, key) {
  const slots = new Map([...node.children].filter((child) => child.dataset.slot).map((child) => [child.dataset.slot, child]));
  if (slots.size === 0) {
    node.textContent = t(key);
    return;
  }
  node.replaceChildren(...template(key, {}).split(/\{(\w+)\}/).map((part, i) => (i % 2 ? slots.get(part) : part)));
}
