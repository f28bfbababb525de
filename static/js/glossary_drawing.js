/** Small drawings from shapes as plain data, in the page's colours: what glossary.js says becomes an SVG. */

const SVG = "http://www.w3.org/2000/svg";
const CELL = 14;
const PITCH = 18;
const KINDS = { r: "reused", c: "computed", p: "partial", d: "decode", f: "free", n: "running", e: "blank", x: "gone" };

function shape(tag, attributes, text = null) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== null) node.textContent = text;
  return node;
}

const block = (x, y, width, height, kind) => shape("rect", { x, y, width, height, rx: 2.5, class: `draw-${KINDS[kind]}` });
const stroke = (x1, y1, x2, y2, kind) => shape("line", { x1, y1, x2, y2, class: `draw-${kind}` });

const SHAPES = {
  cells: (x, y, kinds) =>
    [...kinds].map((kind, i) => {
      // A partial block is a smaller one, as in the lanes.
      const inset = kind === "p" ? 2.5 : 0;
      return block(x + i * PITCH, y + inset, CELL, CELL - 2 * inset, kind);
    }),
  bar: (x, y, width, kind) => [block(x, y, width, 11, kind)],
  frame: (x, y, width, height) => [shape("rect", { x, y, width, height, rx: 4, class: "draw-frame" })],
  dots: (x, y, n) => Array.from({ length: n }, (_, i) => shape("circle", { cx: x + i * 8.4, cy: y, r: 2.6, class: "draw-dot" })),
  line: (x1, y1, x2, y2) => [stroke(x1, y1, x2, y2, "line")],
  dashes: (x1, y1, x2, y2) => [stroke(x1, y1, x2, y2, "dashes")],
  word: (x, y, text) => [shape("text", { x, y, class: "draw-word" }, text)],
  arrow(x1, y1, x2, y2) {
    const angle = Math.atan2(y2 - y1, x2 - x1);
    const barb = (turn) => `${(x2 - 5 * Math.cos(angle + turn)).toFixed(1)} ${(y2 - 5 * Math.sin(angle + turn)).toFixed(1)}`;
    return [stroke(x1, y1, x2, y2, "line"), shape("path", { d: `M${barb(0.6)} L${x2} ${y2} L${barb(-0.6)}`, class: "draw-line" })];
  },
};

/** What a drawing's shapes may be called. */
export const SHAPE_NAMES = Object.keys(SHAPES);

/** An SVG of `shapes`, decorative: the words beside it say the same. */
export function drawing(shapes) {
  const root = shape("svg", { viewBox: "0 0 160 44", class: "drawing", "aria-hidden": "true", focusable: "false" });
  for (const [name, ...rest] of shapes) root.append(...SHAPES[name](...rest));
  return root;
}
