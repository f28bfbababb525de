/** The button of a chart that hands out its data (CSV, JSON) and its picture (PNG, SVG). */

import { make, setText } from "../dom.js";
import { download } from "../download.js";
import { plotlyText } from "../format.js";
import { hasWords, t } from "../words.js";
import { fileName, pictureLayout, toCsv, toJson } from "./export.js";
import { baseLayout, merge } from "./plot.js";

const PICTURE = { width: 960, height: 520 };
const TYPES = { csv: "text/csv", json: "application/json" };

/** A button and its popover. `current()` is {state, ui} as last seen, null before; `title` the element that names it. */
export function chartMenu(definition, { getPalette, current, title }) {
  const id = `menu-${definition.name}`;
  const said = make("p", { class: "menu-said", role: "status" });
  const items = ["csv", "json", "png", "svg"].map((format) => {
    const item = make("button", { type: "button", "data-format": format, "data-t": `charts.save-${format}` }, t(`charts.save-${format}`));
    item.addEventListener("click", () => save(format));
    return item;
  });
  const panel = make("div", { id, class: "menu", popover: "auto", role: "group", "data-t-label": "charts.take", "aria-label": t("charts.take") }, ...items, said);
  const button = make("button", { type: "button", class: "take", popovertarget: id, "data-t-label": "charts.take", "aria-label": t("charts.take") }, icon());
  panel.addEventListener("toggle", ({ newState }) => {
    if (newState === "open") place(panel, button);
    setText(said, "");
  });
  return make("span", { class: "chart-tools" }, button, panel);

  async function save(format) {
    if (current() === null) return;
    const { state, ui } = current();
    const at_ms = Date.now();
    const name = fileName(definition.name, at_ms, format);
    try {
      if (format in TYPES) {
        const rows = definition.table(state, ui);
        const text = format === "csv" ? toCsv(rows) : toJson({ name: definition.name, about: aboutIt(), server: state.serverOrder[0] ?? null, at_ms, rows });
        download(name, text, TYPES[format]);
      } else download(name, await picture(format, state, ui));
      setText(said, t("charts.saved", { name }));
    } catch (error) {
      setText(said, t("charts.not-saved", { why: error.message }));
    }
  }

  /** Window, source and formula, in the page's words. */
  function aboutIt() {
    const parts = ["window", "source", "formula"].map((part) => [part, `info.${definition.topic}.${part}`]);
    return Object.fromEntries(parts.filter(([, key]) => hasWords(key)).map(([part, key]) => [part, t(key)]));
  }

  /** A picture of the chart as a blob, drawn anew at a size of its own. */
  async function picture(format, state, ui) {
    const palette = getPalette();
    const chart = definition.build(state, palette, ui);
    const layout = merge(baseLayout(palette, PICTURE.width, PICTURE.height), chart.layout);
    const words = { title: plotlyText(title.textContent), source: plotlyText(aboutIt().source ?? "") };
    const figure = { data: chart.data, layout: pictureLayout(layout, palette, words, PICTURE) };
    const address = await window.Plotly.toImage(figure, { format, ...PICTURE, scale: format === "png" ? 2 : 1 });
    return blobOf(address);
  }
}

/** The bytes of a data: address; the page's policy lets nothing fetch it. */
function blobOf(address) {
  const comma = address.indexOf(",");
  const head = address.slice(5, comma);
  const body = address.slice(comma + 1);
  if (!head.endsWith(";base64")) return new Blob([decodeURIComponent(body)], { type: head });
  return new Blob([Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0))], { type: head.slice(0, -7) });
}

const GAP = 6;

/** Under the button, its right edge on the button's, within the window. */
function place(panel, button) {
  const { right, bottom, top } = button.getBoundingClientRect();
  const { width, height } = panel.getBoundingClientRect();
  panel.style.left = `${Math.max(GAP, Math.min(right, window.innerWidth - GAP) - width)}px`;
  panel.style.top = `${bottom + GAP + height <= window.innerHeight ? bottom + GAP : Math.max(GAP, top - GAP - height)}px`;
}

const SVG = "http://www.w3.org/2000/svg";

/** An arrow into a tray. */
function icon() {
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of [["viewBox", "0 0 16 16"], ["aria-hidden", "true"], ["focusable", "false"]]) svg.setAttribute(name, value);
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", "M8 2v7.2M4.8 6.4 8 9.6l3.2-3.2M2.5 11v2.5h11V11");
  svg.append(path);
  return svg;
}
