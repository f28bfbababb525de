/**
 * The page's colours for canvases and Plotly, read from the CSS custom properties, so that CSS alone names them.
 * Reused and computed differ in brightness and by a hatch too.
 */

const NAMES = [
  "panel", "line", "text", "muted", "faint", "reused", "reused-soft", "computed", "computed-ink", "decode", "decode-ink", "pending",
  "evicted", "on-reused", "cell-empty", "cell-single", "cell-few", "cell-many", "cell-running", "cell-single-ink",
  "cell-few-ink", "cell-many-ink", "cell-running-ink", "grid",
];

/** The palette's names for each state of a block in the cache (selectors.CELL), and for what is written on it. */
export const CELL_FILLS = ["cell-empty", "cell-single", "cell-few", "cell-many", "cell-running"];
export const CELL_INKS = ["muted", "cell-single-ink", "cell-few-ink", "cell-many-ink", "cell-running-ink"];

/** {names..., hatch, font, scale}: hatch is a canvas pattern of computed blocks; scale is the type's size against 13 px. */
export function readPalette(root = document.documentElement) {
  const style = getComputedStyle(root);
  const palette = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  palette.font = getComputedStyle(document.body).fontFamily;
  palette.scale = (Number.parseFloat(style.getPropertyValue("--size-body")) || 13) / 13;
  palette.hatch = hatch(palette.computed, palette["computed-ink"]);
  return palette;
}

/** A tile of diagonal strokes that joins seamlessly in both directions. */
function hatch(fill, ink) {
  const size = 6;
  const scale = window.devicePixelRatio || 1;
  const tile = document.createElement("canvas");
  tile.width = tile.height = Math.round(size * scale);
  const context = tile.getContext("2d");
  context.scale(tile.width / size, tile.height / size);
  context.fillStyle = fill;
  context.fillRect(0, 0, size, size);
  context.strokeStyle = ink;
  context.lineWidth = 1.6;
  for (const offset of [-size, 0, size]) {
    context.beginPath();
    context.moveTo(offset - 1, size + 1);
    context.lineTo(offset + size + 1, -1);
    context.stroke();
  }
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(size / tile.width));
  return pattern;
}
