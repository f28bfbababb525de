/** All charts of the page: those of the live row stand in the template, those of the numbers are made here. */

import { createChart } from "../charts/chart.js";
import { firstTokenChart, againstChart, spreadChart } from "../charts/first_token.js";
import { poolChart, queueChart } from "../charts/pool.js";
import { rateChart, windowsChart } from "../charts/rates.js";
import { sourcesChart, tokensChart } from "../charts/tokens.js";
import { byId, make, setAttribute, setText } from "../dom.js";
import { t } from "../words.js";
import { infoButton } from "./info.js";

const LIVE = { ttft: firstTokenChart, rate: rateChart, tokens: tokensChart };
const NUMBERS = { windows: windowsChart, sources: sourcesChart, spread: spreadChart, against: againstChart, pool: poolChart, queue: queueChart };
/** Readings come once a second. */
const NUMBERS_INTERVAL_MS = 1000;

export function createChartPanels({ getPalette, sight, onFirstTokenBy }) {
  const live = Object.entries(LIVE).map(([id, definition]) => createChart(byId(`chart-${id}`), definition, { getPalette, sight }));
  const numbers = [...document.querySelectorAll("[data-charts]")].flatMap((place) =>
    place.dataset.charts.split(" ").map((id) => createChart(panelOf(place, id), NUMBERS[id], { getPalette, sight, interval: NUMBERS_INTERVAL_MS })),
  );
  return [createFirstTokenSwitch(onFirstTokenBy), ...live, ...numbers];
}

/** Makes a chart's section in `place` and answers the element that it is drawn in. */
function panelOf(place, id) {
  const worded = (tag, key, attributes = {}) => make(tag, { ...attributes, "data-t": key }, t(key));
  const plot = make("div", { id: `chart-${id}`, class: "chart-plot", role: "img", "aria-label": t(`charts.${id}`) });
  const head = make("header", { class: "panel-head" }, worded("h3", `charts.${id}`, { id: `chart-${id}-title` }), infoButton(`chart-${id}`), worded("p", `charts.${id}-lead`, { class: "lead" }));
  place.append(make("section", { class: "chart panel", "aria-labelledby": `chart-${id}-title` }, head, plot, worded("p", `charts.${id}-empty`, { class: "empty chart-empty", hidden: true })));
  return plot;
}

/** The two buttons over the chart of first-token times, and its lead. */
function createFirstTokenSwitch(onSwitch) {
  const buttons = [...document.querySelectorAll("[data-ttft-by]")];
  for (const button of buttons) button.addEventListener("click", () => onSwitch(button.dataset.ttftBy));
  return (state, ui) => {
    for (const button of buttons) setAttribute(button, "aria-pressed", String(button.dataset.ttftBy === ui.ttftBy));
    setText(byId("ttft-lead"), t(`charts.ttft-lead-${ui.ttftBy}`));
    return null;
  };
}
