/** Draws the timeline's strip on a canvas: what it looks like, and nothing of where its data come from. */

import { clock } from "../format.js";
import { BUCKET_MS } from "../track.js";

/** Ticks stand so far apart, in seconds, that their times have room. */
const TICKS_S = [10, 30, 60, 180, 360];
const TICK_ROOM = 70;

/** scene: {buckets, end, span (how much is shown), range, ms (the moment shown, or null: live), palette}; times in ms of the events' clock. */
export function drawTrack(canvas, scene) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const scale = window.devicePixelRatio || 1;
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) };
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size);
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  const frame = { ...scene, context, width, height, x: (ms) => width * (1 - (scene.end - ms) / scene.span) };
  drawUnknown(frame);
  drawTicks(frame);
  drawBuckets(frame);
  drawMoment(frame);
}

/** Before the page was opened there is nothing to go to. */
function drawUnknown({ context, palette, height, range, x }) {
  const edge = x(range.from_ms);
  context.fillStyle = palette.faint;
  if (edge > 0) context.fillRect(0, 0, edge, height);
}

function drawTicks({ context, palette, width, height, end, span, x }) {
  Object.assign(context, { font: `${9.5 * palette.scale}px ${palette.font}`, textAlign: "left", textBaseline: "top", fillStyle: palette.muted, strokeStyle: palette.line, lineWidth: 1 });
  const every = 1000 * (TICKS_S.find((seconds) => (width * seconds * 1000) / span >= TICK_ROOM * palette.scale) ?? TICKS_S.at(-1));
  const digits = every < 60_000 ? 8 : 5;
  for (let at = Math.ceil((end - span) / every) * every; at < end; at += every) {
    context.beginPath();
    context.moveTo(x(at), 0);
    context.lineTo(x(at), height);
    context.stroke();
    if (x(at) < width - 50) context.fillText(clock(at).slice(0, digits), x(at) + 3, 1);
  }
}

/** Requests stand as bars on the ground, the hit rate lies over them as a line, evictions hang as drops from above. */
function drawBuckets({ context, palette, width, height, buckets, span, x }) {
  const most = Math.max(4, ...buckets.map(({ requests }) => requests));
  const mostEvicted = Math.max(8, ...buckets.map(({ evicted }) => evicted));
  const wide = Math.max(1, (width * BUCKET_MS) / span - 1);
  const ground = height - 1;
  const room = height - 13;
  for (const bucket of buckets) {
    const left = x(bucket.at_ms);
    context.fillStyle = palette.pending;
    if (bucket.requests > 0) context.fillRect(left, ground - Math.max(2, (room * bucket.requests) / most), wide, Math.max(2, (room * bucket.requests) / most));
    context.fillStyle = palette.evicted;
    if (bucket.evicted > 0) context.fillRect(left, 12, wide, Math.max(2, (room * 0.45 * bucket.evicted) / mostEvicted));
    if (bucket.cleared > 0) context.fillRect(left, 12, 2, room);
  }
  context.fillStyle = palette.reused;
  for (const { at_ms, hit, query } of buckets) {
    if (query > 0) context.fillRect(x(at_ms), ground - 2 - (room - 2) * (hit / query), Math.max(3, wide), 2.5);
  }
}

function drawMoment({ context, palette, width, height, ms, x }) {
  const at = Math.min(width - 1.5, ms === null ? width : x(ms));
  context.fillStyle = palette.text;
  context.fillRect(at - 1, 0, 2, height);
  context.beginPath();
  context.moveTo(at - 5, 0);
  context.lineTo(at + 5, 0);
  context.lineTo(at, 7);
  context.fill();
}
