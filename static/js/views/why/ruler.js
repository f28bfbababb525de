/**
 * The ruler and the forecast of the prompt in "Try it", before it is sent: block borders behind its words, a strip of its
 * blocks, and what would be reused.
 */

import { receiverOf } from "../../chosen_server.js";
import { buildRequest, freshSalt, isBusy } from "../../composer.js";
import { byId, make, setAttribute, setChildren, setHidden, setStyle, setText } from "../../dom.js";
import { duration } from "../../format.js";
import { MAX_CHARS, bodyKey, markedText, messageSpans, rankOf, runsOf } from "../../why/forecast.js";
import { t } from "../../words.js";

/** While blocks come and go, the same prompt is asked about again at most so often. */
const AGAIN_MS = 5000;
/** Beyond so many blocks a strip shows runs without their borders. */
const MAX_BORDERS = 160;
const TYPE = ["font-family", "font-size", "font-weight", "line-height", "letter-spacing"];

/** What is said of a forecast: {reuse, time, tail}. Pure. */
export function forecastWords(forecast) {
  const { tokens, cached_tokens: cached, block_size: size, blocks, tail_tokens: tail, ttft } = forecast;
  const reused = cached !== null && size ? Math.floor(cached / size) : null;
  const several = forecast.ranks.length > 1 ? t("forecast.rank", { rank: String(rankOf(forecast).rank) }) : "";
  let reuse = t("forecast.reuse", { n: tokens, cached, reused, blocks, several });
  if (cached === null) reuse = t("forecast.no-events", { n: tokens, blocks });
  else if (cached === 0) reuse = t("forecast.none", { n: tokens, blocks });
  let time = t("forecast.no-time");
  if (cached === null) time = "";
  else if (ttft !== null) time = t("forecast.time", { about: duration(ttft.about_ms), early: duration(ttft.early_ms), late: duration(ttft.late_ms) });
  return { reuse, time, tail: tail ? t("forecast.tail", { n: tail }) : t("forecast.no-tail", { size }) };
}

/** `asker` of why/asking.js; `draft(state)` is what the form would send; `onTouch` asks for a redraw. */
export function createRuler({ asker, draft, onTouch }) {
  const field = byId("system-prompt");
  const mirror = byId("system-mirror");
  const salt = freshSalt();
  let last = null;
  let key = null;
  let asked = { caches: null, at: -Infinity, run: null };
  let drawn = [];

  for (const kind of ["input", "change", "click"]) byId("try").addEventListener(kind, onTouch);
  field.addEventListener("scroll", () => (mirror.scrollTop = field.scrollTop), { passive: true });

  /** Asks anew when the draft changed, a run ended, or blocks came and went. Answers when to look again, in ms. */
  function ask(state, ui, now) {
    const current = draft(state);
    const changed = last === null || Object.keys(current).some((name) => current[name] !== last[name]);
    if (changed) {
      last = current;
      const { model, system, question, cold, tools, bare } = current;
      const { body } = buildRequest({ model, system, question, tools, bare, salt: cold ? salt : null });
      const empty = model === null || (system === "" && question === "");
      const long = system.length + question.length > MAX_CHARS;
      key = empty || long ? null : bodyKey(body);
      if (key === null) asker.forget();
      else asker.want(key, body);
      asked = { caches: state.caches, at: now, run: ui.run.phase };
      return null;
    }
    if (isBusy(ui.run) || (asked.caches === state.caches && asked.run === ui.run.phase)) return null;
    const wait = asked.run === ui.run.phase ? asked.at + AGAIN_MS - now : 0;
    if (wait > 0) return wait;
    asked = { caches: state.caches, at: now, run: ui.run.phase };
    asker.again();
    return null;
  }

  return (state, ui, now) => {
    const wait = ask(state, ui, now);
    const inputs = [ui.forecast, last, ui.paint];
    if (inputs.some((input, i) => input !== drawn[i])) draw(state, ui.forecast);
    drawn = inputs;
    return wait;
  };

  function draw(state, { phase, key: about, answer, error }) {
    const long = last.system.length + last.question.length > MAX_CHARS;
    const fits = answer !== null && about === key;
    const root = byId("forecast");
    setHidden(root, last.system === "" && last.question === "");
    setAttribute(root, "data-phase", phase);
    setAttribute(root, "data-stale", answer !== null && !fits);
    // What is known of an older text stays until the newer one's is there, without its borders, which would be wrong.
    drawMirror(fits && !long ? markedText(answer, last.system === "" && !last.bare ? -1 : 0, last.system) : null);
    drawStrip(long ? null : answer);
    if (answer === null || long) {
      setText(byId("forecast-reuse"), quiet(state, { long, phase, error }));
      for (const part of ["time", "tail"]) setText(byId(`forecast-${part}`), "");
      return;
    }
    const words = forecastWords(answer);
    for (const part of ["reuse", "time", "tail"]) setText(byId(`forecast-${part}`), words[part]);
  }

  function quiet(state, { long, phase, error }) {
    if (long) return t("forecast.too-long", { n: MAX_CHARS });
    if (phase === "failed") return error;
    return receiverOf(state)?.models.length ? t("forecast.asking") : t("try.no-model");
  }

  function drawMirror(parts) {
    const nodes = (parts ?? []).map(({ block, kind, text }) => make("span", { "data-kind": kind, "data-odd": block % 2 === 1 }, text));
    // A text area shows a last empty line, which other elements leave out.
    setChildren(mirror, parts === null ? [] : [...nodes, "\n"].map((node) => (typeof node === "string" ? document.createTextNode(node) : node)));
    // The same type as in the text area, whatever the screen: only then do the words cover each other.
    const type = getComputedStyle(field);
    if (parts !== null) for (const name of TYPE) setStyle(mirror, name, type.getPropertyValue(name));
    mirror.scrollTop = field.scrollTop;
  }
}

function drawStrip(forecast) {
  const strip = byId("forecast-strip");
  setHidden(strip, forecast === null || !forecast.block_size);
  setHidden(byId("forecast-spans"), strip.hidden);
  if (strip.hidden) return;
  const runs = runsOf(forecast);
  const bordered = forecast.blocks <= MAX_BORDERS;
  setAttribute(strip, "aria-label", t("forecast.strip", { n: forecast.blocks }));
  setChildren(
    strip,
    runs.map(({ kind, blocks, tokens }) => {
      const node = make("i", { "data-kind": kind, "data-blocks": blocks, "data-bordered": bordered && blocks > 1, title: t(`forecast.kind.${kind}`, { n: blocks }) });
      node.style.flexGrow = String(tokens);
      node.style.setProperty("--blocks", String(blocks));
      return node;
    }),
  );
  setChildren(
    byId("forecast-spans"),
    messageSpans(forecast).map(({ role, start, end }) => {
      const node = make("span", { "data-side": (start + end) / 2 > 0.8 ? "end" : null }, make("small", {}, t(role === "system" ? "forecast.system" : "forecast.question")));
      node.style.left = `${100 * start}%`;
      node.style.width = `${100 * (end - start)}%`;
      return node;
    }),
  );
}
