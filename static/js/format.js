/**
 * Numbers and times as text, in the page's language: the only place that says %, ms and what unknown looks like.
 * Every function takes null for "unknown" and answers an em dash, never 0.
 */

import { UNKNOWN, count, known } from "./numerals.js";
import { hasWords, t } from "./words.js";

export { UNKNOWN, count };
/** Plotly's tick format for shares: "50 %" is written there without the space. */
export const RATIO_TICKS = ",.0%";
/** Plotly's suffix for an axis in milliseconds. */
export const MS_TICKS = " ms";

/** A ratio of 0 to 1 as text with at most one decimal; 99.96 % never rounds up to 100 %. */
export function percent(ratio) {
  if (!known(ratio)) return UNKNOWN;
  const scaled = ratio * 100;
  let text = scaled.toFixed(scaled >= 99.95 && scaled < 100 ? 2 : 1);
  if (scaled < 100 && Number(text) === 100) text = "99.99";
  return t("unit.percent", { value: text.replace(/\.0+$/, "") });
}

/** Milliseconds as text with its unit: "0.7 ms", "43 ms", "1.27 s". */
export function duration(ms) {
  if (!known(ms)) return UNKNOWN;
  if (ms < 9.95) return t("unit.ms", { value: ms.toFixed(1) });
  if (ms < 999.5) return t("unit.ms", { value: Math.round(ms) });
  return t("unit.s", { value: (ms / 1000).toFixed(ms < 9995 ? 2 : 1) });
}

/** The time of day of a moment, as the browser's own place has it: "19:31:04". */
export function clock(at_ms) {
  if (!known(at_ms)) return UNKNOWN;
  const moment = new Date(at_ms);
  return [moment.getHours(), moment.getMinutes(), moment.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes as text, in powers of 1,024: "640 B", "2.6 MiB". */
export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  const step = Math.min(BYTE_UNITS.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** step;
  return t("unit.bytes", { value: step === 0 || scaled >= 99.95 ? count(scaled) : scaled.toFixed(1), unit: BYTE_UNITS[step] });
}

/** Something a second: "0.4 a second", "120 a second". */
export function rateOf(per_s) {
  if (!known(per_s)) return UNKNOWN;
  return t("unit.rate", { value: per_s > 0 && per_s < 9.95 ? per_s.toFixed(1) : count(per_s) });
}

/** How long ago `at_ms` was, in the coarsest sensible unit. */
export function age(at_ms, now_ms) {
  if (!known(at_ms) || !known(now_ms)) return UNKNOWN;
  const seconds = Math.max(0, (now_ms - at_ms) / 1000);
  if (seconds < 1.5) return t("age.now");
  if (seconds < 90) return t("age.seconds", { n: Math.round(seconds) });
  if (seconds < 5400) return t("age.minutes", { n: Math.round(seconds / 60) });
  return t("age.hours", { n: Math.round(seconds / 3600) });
}

/** The first digits of a block hash. */
export function shortHash(hash) {
  return hash ? `${hash.slice(0, 8)}…` : UNKNOWN;
}

/** "#8" for the request "r-8"; the end of the id where it holds no number. */
export function requestName(id) {
  const digits = /(\d+)$/.exec(id ?? "");
  return digits ? `#${Number(digits[1])}` : `#${String(id ?? "?").slice(-4)}`;
}

/** "gpu-1:8000" for "http://gpu-1:8000". */
export function hostOf(url) {
  return String(url ?? "").replace(/^[a-z]+:\/\//i, "").replace(/\/$/, "") || UNKNOWN;
}

/** What the word of a `basis` means, in the page's words. */
export function basisName(basis) {
  return hasWords(`basis.${basis}`) ? t(`basis.${basis}`) : UNKNOWN;
}

/** Text for Plotly's labels, which read a few HTML tags: shown as it is instead. */
export function plotlyText(text) {
  return String(text ?? "").replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** At most `length` characters (whole code points), with an ellipsis where some are left out. */
export function clip(text, length) {
  const points = Array.from(String(text ?? ""));
  return points.length <= length ? points.join("") : `${points.slice(0, length - 1).join("")}…`;
}

/** "#8 Where is my parcel?" of a request, for Plotly's labels. */
export const hoverTitle = ({ id, label }) => plotlyText(clip(`${requestName(id)} ${label ?? ""}`.trim(), 40));

/** The words of a block without the chat template's own marks, on one line: what a person would call it by. */
export function wordsOf(text, length = 90) {
  const plain = String(text ?? "").replaceAll(/<\|[^|>]{1,40}\|>/g, " ").replaceAll(/\s+/g, " ").trim();
  return clip(plain.replace(/^(system|user|assistant) /, ""), length);
}
