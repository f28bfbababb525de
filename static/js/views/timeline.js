/** The timeline at the foot of the page: the last quarter of an hour, to be scrubbed, played and left again. */

import { byId, setAttribute, setHidden, setText } from "../dom.js";
import { clock, percent } from "../format.js";
import { throttle } from "../frame.js";
import { SPEEDS } from "../replay.js";
import { LIMITS } from "../timeline.js";
import { BUCKET_MS } from "../track.js";
import { t } from "../words.js";
import { drawTrack } from "./timeline_canvas.js";

const STEP_MS = 1_000;
const PAGE_MS = 15_000;
const LEAST_SPAN_MS = 60_000;
/** Live, the strip moves a bucket every five seconds; more often than this nothing is seen of it. */
const INTERVAL_MS = 500;

/** How much time the strip shows: all that there is, up to a quarter of an hour. Pure. */
export const spanOf = (range, end_ms) => Math.min(LIMITS.window_ms, Math.max(LEAST_SPAN_MS, end_ms - range.from_ms));

/** The moment at a point `x` of a strip of `width` that ends at `end_ms`. Pure. */
export const momentAt = (x, width, end_ms, span_ms) => end_ms - span_ms * (1 - Math.min(1, Math.max(0, x / Math.max(1, width))));

/** "0.1×" Pure. */
const speedWords = (speed) => t("time.speed", { speed: String(speed) });

export function createTimelineView({ replay, timeline, track, getPalette }) {
  const root = byId("timeline");
  const slider = byId("timeline-track");
  const canvas = byId("timeline-canvas");
  const play = byId("timeline-play");
  const said = byId("timeline-said");
  const gate = throttle(INTERVAL_MS);
  const now = () => performance.now();
  let drawn = {};
  let announced = false;

  play.addEventListener("click", () => replay.toggle(now()));
  byId("timeline-slower").addEventListener("click", () => replay.faster(-1, now()));
  byId("timeline-faster").addEventListener("click", () => replay.faster(1, now()));
  byId("timeline-live").addEventListener("click", () => replay.live());
  for (const button of document.querySelectorAll("[data-time=pause]")) button.addEventListener("click", () => replay.toggle(now()));
  for (const button of document.querySelectorAll("[data-time=slow]")) button.addEventListener("click", () => replay.slow(now()));

  function scrub(event) {
    const box = slider.getBoundingClientRect();
    const end = replay.edge(now());
    if (end !== null) replay.seek(momentAt(event.clientX - box.left, box.width, end, spanOf(timeline.range(), end)), now(), { playing: false });
  }
  slider.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    slider.setPointerCapture(event.pointerId);
    slider.focus({ preventScroll: true });
    event.preventDefault();
    scrub(event);
  });
  slider.addEventListener("pointermove", (event) => slider.hasPointerCapture(event.pointerId) && scrub(event));
  slider.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -STEP_MS, ArrowDown: -STEP_MS, ArrowRight: STEP_MS, ArrowUp: STEP_MS, PageDown: -PAGE_MS, PageUp: PAGE_MS };
    if (event.key in moves) replay.skip(moves[event.key] * (event.shiftKey ? 10 : 1), now());
    else if (event.key === "Home") replay.seek(-Infinity, now());
    else if (event.key === "End") replay.live();
    else if (event.key === " " || event.key === "Enter") replay.toggle(now());
    else return;
    event.preventDefault();
  });

  function drawWords(shown, range, end) {
    const { on, ms, playing, speed, reading } = shown;
    document.body.dataset.time = on ? "replay" : "live";
    setAttribute(root, "data-playing", playing);
    setAttribute(root, "data-reading", reading);
    setText(byId("timeline-now"), on ? t("time.replay", { time: clock(ms) }) : t("time.live"));
    setText(byId("timeline-speed"), speedWords(speed));
    setText(play.firstElementChild, playing || !on ? "❚❚" : "▶");
    setAttribute(play, "aria-label", t(playing || !on ? "time.pause" : "time.play"));
    setHidden(byId("timeline-live"), !on);
    for (const id of ["timeline-slower", "timeline-speed", "timeline-faster"]) setHidden(byId(id), !on);
    setAttribute(byId("timeline-slower"), "aria-disabled", String(speed === SPEEDS[0]));
    setAttribute(byId("timeline-faster"), "aria-disabled", String(speed === SPEEDS.at(-1)));
    for (const button of document.querySelectorAll("[data-time=pause]")) setText(button, t(playing || !on ? "time.pause" : "time.play"));
    for (const button of document.querySelectorAll("[data-time=slow]")) setAttribute(button, "aria-pressed", String(on && speed < 1));
    if (range === null) return;
    const before_s = on ? Math.round((end - ms) / 1000) : 0;
    setAttribute(slider, "aria-valuemin", -Math.round((end - range.from_ms) / 1000));
    setAttribute(slider, "aria-valuemax", 0);
    setAttribute(slider, "aria-valuenow", -before_s);
    setAttribute(slider, "aria-valuetext", on ? t("time.value", { time: clock(ms), n: before_s }) : t("time.live"));
    // Once for each way: the slider itself says the moments.
    if (on !== announced) setText(said, t(on ? "time.said-replay" : "time.said-live"));
    announced = on;
  }

  return (_, ui, time) => {
    const shown = ui.replay;
    const range = timeline.range();
    const end = replay.edge(time);
    setHidden(root, range === null);
    if (range === null) return null;
    const width = canvas.clientWidth;
    const inputs = [shown, ui.paint, width];
    const changed = !drawn.inputs || inputs.some((input, i) => input !== drawn.inputs[i]);
    const wait = gate.wait(time, shown.on && !shown.playing && !changed ? BUCKET_MS : INTERVAL_MS);
    if (!changed && wait > 0) return wait;
    // What plays moves on each frame; its words and its strip need not.
    if (shown.playing && drawn.on && wait > INTERVAL_MS - 100) return 0;
    drawWords(shown, range, end);
    drawTrack(canvas, { buckets: track.buckets(), end, span: spanOf(range, end), range, ms: shown.on ? shown.ms : null, palette: getPalette() });
    setAttribute(slider, "title", trackTitle(track.buckets()));
    drawn = { inputs, on: shown.on };
    gate.drawn(time);
    return shown.playing ? 0 : INTERVAL_MS;
  };
}

/** What the strip holds in all, for those who can't see it. Pure. */
export function trackTitle(buckets) {
  const sum = (name) => buckets.reduce((total, bucket) => total + bucket[name], 0);
  const query = sum("query");
  return t("time.track-title", { requests: t("unit.requests", { n: sum("requests") }), rate: percent(query > 0 ? sum("hit") / query : null), evicted: t("unit.blocks", { n: sum("evicted") }) });
}
