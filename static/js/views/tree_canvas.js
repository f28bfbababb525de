/** Draws the prefix tree on a canvas: what it looks like, and nothing of where its data come from. */

import { spanOf } from "../axis.js";
import { age, count, requestName } from "../format.js";
import { FADE_MS } from "../ghosts.js";
import { CELL_FILLS, CELL_INKS } from "../palette.js";
import { shareState } from "../selectors.js";
import { t } from "../words.js";

const RADIUS = 3;

/** Where a run stands: {x, width, cut}; `cut`: blocks that lie right of the axis' end. */
export function spanOfRun(axis, run) {
  const end = run.depth + run.hashes.length;
  const { x } = spanOf(axis, run.depth);
  const right = spanOf(axis, Math.min(end, axis.length)).x;
  return { x, width: Math.max(0, right - x), cut: Math.max(0, end - Math.max(axis.length, run.depth)) };
}

const isLeaf = (scene, run) => run.children.length === 0 || !run.children.some((child) => scene.shown.has(child));

/**
 * The tree as it stands. scene: {axis, fitted, shown (runs drawn), width, height, palette, holders, lit (runs on the way
 * to the block pointed at), words (run to text), now, still}.
 */
export function drawTree(context, scene) {
  context.clearRect(0, 0, scene.width, scene.height);
  for (const row of scene.fitted.rows) {
    const span = spanOfRun(scene.axis, row.run);
    const box = { x: span.x, y: row.y + 0.5, width: Math.max(1.5, span.width - 1.5), height: Math.max(2, row.height - (row.height >= 8 ? 1.5 : 1)) };
    if (span.width <= 0 && span.x > 0) continue;
    context.globalAlpha = alphaOf(scene, row);
    if (row.run.gone_ms === null) drawRun(context, scene, row, box);
    else drawGone(context, scene, row.run, box);
    context.globalAlpha = 1;
    if (!row.context && isLeaf(scene, row.run)) drawNote(context, scene, row, box, span);
    else if (row.hidden > 0) drawHidden(context, scene, row, box);
  }
}

function alphaOf(scene, { run, context }) {
  const faded = run.gone_ms === null || scene.still ? 1 : Math.max(0.15, 1 - (scene.now - run.gone_ms) / FADE_MS);
  if (scene.lit !== null && !scene.lit.has(run)) return faded * 0.38;
  return context ? faded * 0.55 : faded;
}

function drawRun(context, scene, { run, height }, box) {
  const { palette, axis } = scene;
  const state = shareState(run.share, run.running);
  context.fillStyle = palette[CELL_FILLS[state]];
  roundRect(context, box);
  context.fill();
  context.strokeStyle = palette[CELL_INKS[state]];
  const alpha = context.globalAlpha;
  context.globalAlpha = alpha * 0.28;
  context.lineWidth = 1;
  if (axis.cell >= 6 && height >= 6) drawBlocks(context, axis, run, box);
  context.globalAlpha = alpha;
  if (height >= 13 * palette.scale) writeInside(context, scene, run, box, palette[CELL_INKS[state]]);
}

/** A faint line between block and block, so that they are counted against the lanes above; folds have none. */
function drawBlocks(context, axis, run, box) {
  context.beginPath();
  for (const segment of axis.segments) {
    if (segment.kind === "fold") continue;
    const to = Math.min(segment.to, run.depth + run.hashes.length);
    for (let i = Math.max(segment.from, run.depth + 1); i < to; i++) {
      const x = Math.round(spanOf(axis, i).x - 1) + 0.5;
      context.moveTo(x, box.y + 1);
      context.lineTo(x, box.y + box.height - 1);
    }
  }
  context.stroke();
}

/** How many blocks and requests, or the words that it begins with. */
function writeInside(context, scene, run, box, ink) {
  const blocks = t("unit.blocks", { n: run.hashes.length });
  const sharing = run.share > 1 ? t("tree.shared-by", { blocks, n: run.share }) : blocks;
  const words = scene.words.get(run);
  const texts = [...(words ? [t("tree.with-words", { blocks, words })] : []), sharing, blocks, count(run.hashes.length)];
  context.font = `600 ${(box.height >= 13 * scene.palette.scale ? 11 : 10) * scene.palette.scale}px ${scene.palette.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const room = box.width - 14;
  const clipped = words && room > 150 ? clipTo(context, texts[0], room) : null;
  const text = clipped ?? texts.find((candidate) => context.measureText(candidate).width <= room) ?? null;
  if (text === null) return;
  const { width } = context.measureText(text);
  const fill = context.fillStyle;
  // A plate under the words, so that the lines between blocks don't cross them.
  if (context.globalAlpha === 1) context.fillRect(box.x + 4, box.y + 1, width + 7, box.height - 2);
  context.fillStyle = ink;
  context.fillText(text, box.x + 7, box.y + box.height / 2 + 0.5);
  context.fillStyle = fill;
}

function clipTo(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low < 8 ? null : `${text.slice(0, low)}…`;
}

function drawGone(context, scene, run, box) {
  const { palette } = scene;
  context.strokeStyle = palette.evicted;
  context.lineWidth = 1.5;
  context.setLineDash([4, 3]);
  roundRect(context, { x: box.x + 0.75, y: box.y + 0.75, width: Math.max(1, box.width - 1.5), height: Math.max(1, box.height - 1.5) });
  context.stroke();
  context.setLineDash([]);
}

/** Right of a leaf: whose it is, or when it went. */
function drawNote(context, scene, { run, height }, box, span) {
  const { palette } = scene;
  if (height < 9 * palette.scale) return;
  const x = box.x + box.width + 7;
  if (x > scene.width - 24) return;
  const texts = run.gone_ms === null ? names(scene, run, span) : [t("tree.evicted-ago", { age: age(run.gone_ms, scene.now) }), t("tree.evicted")];
  context.font = `${(height >= 13 * palette.scale ? 11 : 9.5) * palette.scale}px ${palette.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const text = texts.find((candidate) => context.measureText(candidate).width <= Math.max(0, scene.width - x));
  if (text === undefined) return;
  context.fillStyle = run.gone_ms === null ? palette.muted : palette.evicted;
  context.globalAlpha = scene.lit !== null && !scene.lit.has(run) ? 0.5 : 1;
  context.fillText(text, x, box.y + box.height / 2 + 0.5);
  context.globalAlpha = 1;
}

/** Below the drawn branches of a run: how many aren't. */
function drawHidden(context, scene, { run, y, height, hidden, rest }, box) {
  if (rest < 10 * scene.palette.scale) return;
  context.font = `${10 * scene.palette.scale}px ${scene.palette.font}`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = scene.palette.muted;
  context.globalAlpha = scene.lit !== null && !scene.lit.has(run) ? 0.5 : 1;
  context.fillText(`+${t("unit.branches", { n: hidden })}`, box.x + box.width + 7, y + height - rest / 2);
  context.globalAlpha = 1;
}

function names(scene, run, span) {
  const ids = scene.holders.get(run.hashes.at(-1)) ?? [];
  const more = span.cut > 0 ? [`+${t("unit.blocks", { n: span.cut })} →`] : [];
  const hidden = run.children.length > 0 ? [`+${t("unit.branches", { n: run.children.length })}`] : [];
  if (run.share === 0) return [...hidden, ...more, t("tree.of-older"), ""];
  const listed = (n) => `${ids.slice(0, n).map(requestName).join(" ")}${run.share > n ? ` +${count(run.share - n)}` : ""}`;
  return [...hidden, ...more, ...(ids.length > 0 ? [listed(5), listed(3), listed(1)] : [])];
}

/** What moves on it: reuse swells, new blocks flash in; one cell each, in the row of their run. */
export function drawTreeEffects(context, scene, rowOf) {
  const { axis, effects, palette, now, still } = scene;
  for (const hash of effects.hashes()) {
    const row = rowOf(hash);
    const effect = row === null ? null : effects.at(hash, now, { still });
    if (effect === null || effect.kind === "removed") continue;
    const index = row.run.depth + row.at;
    if (index >= axis.length) continue;
    const { x, width } = spanOf(axis, index);
    const unborn = effect.kind === "unborn";
    context.globalAlpha = unborn ? 1 : effect.strength * 0.75;
    context.fillStyle = unborn ? palette.panel : effect.kind === "reused" ? palette.panel : palette["computed-ink"];
    context.fillRect(x, row.y, Math.max(1, width), row.height);
  }
  context.globalAlpha = 1;
}

/** The ring around the block that is pointed at. */
export function drawTreeFocus(context, scene, row) {
  const index = row.run.depth + row.at;
  if (index >= scene.axis.length) return;
  const { x, width } = spanOf(scene.axis, index);
  context.strokeStyle = scene.palette.text;
  context.lineWidth = 2;
  roundRect(context, { x: Math.max(1, x - 0.5), y: row.y + 1, width: Math.max(3, width - 0.5), height: Math.max(3, row.height - 2) });
  context.stroke();
}

function roundRect(context, { x, y, width, height }) {
  context.beginPath();
  context.roundRect(x, y, width, height, Math.min(RADIUS, width / 3, height / 3));
}
