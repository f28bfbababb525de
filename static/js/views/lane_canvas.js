/** Draws one request's blocks on a canvas: what a lane looks like, and nothing of where its data come from. */

import { runsOf, spanOf } from "../axis.js";
import { count } from "../format.js";
import { t } from "../words.js";

const RADIUS = 2.5;

/**
 * scene: {request, table, axis, height, palette, focusHash, focusIndex, effects, now, still}; focusHash: the block lit
 * everywhere, or null; focusIndex: the one pointed at in this lane, or null.
 */
export function drawLane(context, scene) {
  const { table, axis, height } = scene;
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  for (const segment of axis.segments) {
    if (segment.from >= table.state.length) break;
    if (segment.kind === "fold") drawFold(context, scene, segment);
    else for (let i = segment.from; i < Math.min(segment.to, table.state.length); i++) drawCell(context, scene, i);
  }
  drawFocus(context, scene, height);
}

function boxOf(scene, index) {
  const { x, width } = spanOf(scene.axis, index);
  const gap = width >= 7 ? 2 : width >= 4 ? 1 : 0;
  return { x, y: 1, width: Math.max(0.8, width - gap), height: scene.height - 2 };
}

function drawCell(context, scene, index) {
  const { table, palette, focusHash } = scene;
  const state = table.state[index];
  const box = boxOf(scene, index);
  const lit = focusHash !== null && table.hash[index] === focusHash;
  context.globalAlpha = focusHash !== null && !lit ? 0.38 : 1;
  if (state === "partial") drawPartial(context, box, palette);
  else {
    context.fillStyle = fillOf(state, palette);
    roundRect(context, box);
    context.fill();
    if (state === "decode") drawStripes(context, box, palette["decode-ink"]);
  }
  context.globalAlpha = 1;
  drawEffect(context, scene, index, box);
}

function fillOf(state, palette) {
  if (state === "computed") return palette.hatch;
  return { reused: palette.reused, decode: palette.decode }[state] ?? palette.pending;
}

/** The tail that never fills a block: an outlined cell, shorter than the others. */
function drawPartial(context, box, palette) {
  const height = box.height * 0.6;
  context.strokeStyle = palette["computed-ink"];
  context.lineWidth = 1.5;
  roundRect(context, { x: box.x + 0.75, y: box.y + (box.height - height) / 2, width: Math.max(1, box.width - 1.5), height });
  context.stroke();
}

function drawStripes(context, box, ink) {
  context.fillStyle = ink;
  for (const part of [0.3, 0.65]) context.fillRect(box.x, box.y + box.height * part, box.width, 1.5);
}

/** A fold holds many blocks: a slimmer bar of the runs in it, with its number written on where one word fits all. */
function drawFold(context, scene, segment) {
  const { table, palette, height, focusHash } = scene;
  const first = spanOf(scene.axis, segment.from);
  const runs = runsOf(table.state, segment.from, segment.to);
  context.globalAlpha = focusHash !== null ? 0.38 : 1;
  for (const run of runs) {
    context.fillStyle = fillOf(run.state, palette);
    const x = first.x + (run.from - segment.from) * first.width;
    context.fillRect(x, 4, (run.to - run.from) * first.width - 2, height - 8);
  }
  context.globalAlpha = 1;
  if (runs.length === 1) writeOnFold(context, scene, runs[0], first.x);
}

function writeOnFold(context, scene, run, x) {
  const { palette, height } = scene;
  context.font = `600 ${10 * palette.scale}px ${palette.font}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const room = scene.axis.fold - 6;
  const number = run.to - run.from;
  const said = (blocks) => t(`fold.${run.state}`, { blocks });
  const texts = [said(t("unit.blocks", { n: number })), said(number), `×${count(number)}`];
  // Where the bar is hatched, the shorter text leaves some of the hatch to be seen.
  const wanted = run.state === "reused" ? texts : texts.slice(1);
  const text = wanted.find((candidate) => context.measureText(candidate).width <= room) ?? texts[2];
  const middle = x + scene.axis.fold / 2 - 1;
  const { width } = context.measureText(text);
  if (run.state !== "reused") {
    context.fillStyle = palette.panel;
    roundRect(context, { x: middle - width / 2 - 4, y: 4, width: width + 8, height: height - 8 });
    context.fill();
  }
  context.fillStyle = run.state === "reused" ? palette["on-reused"] : palette.text;
  context.fillText(text, middle, height / 2 + 0.5);
}

/**
 * A reuse swells in white over its blue, a new block flashes in; at the same moment as in the cache
 * picture, and only in the lane of the request that caused it. */
function drawEffect(context, { request, table, effects, now, still, palette }, index, box) {
  const hash = table.hash[index];
  const effect = hash === null ? null : effects.at(hash, now, { still });
  if (effect === null || effect.kind === "unborn" || effect.kind === "removed" || effect.request !== request) return;
  context.globalAlpha = effect.strength * (effect.kind === "reused" ? 0.75 : 0.6);
  context.fillStyle = effect.kind === "reused" ? palette.panel : palette["computed-ink"];
  roundRect(context, box);
  context.fill();
  context.globalAlpha = 1;
}

/** A ring around every place where the pointed-at block stands. */
function drawFocus(context, scene, height) {
  const { table, focusHash, focusIndex, palette } = scene;
  context.strokeStyle = palette.text;
  context.lineWidth = 2;
  for (let i = 0; i < table.state.length; i++) {
    const same = focusHash !== null && table.hash[i] === focusHash;
    if (!same && i !== focusIndex) continue;
    const box = boxOf(scene, i);
    const width = Math.max(box.width, 3);
    roundRect(context, { x: Math.max(1, box.x), y: 1, width, height: height - 2 });
    context.stroke();
  }
}

function roundRect(context, { x, y, width, height }) {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(RADIUS, width / 3));
}
