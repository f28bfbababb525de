/** What the first-token chart shows: the times in the order of the requests, or against what each had to compute. */

import { byId, setAttribute, setText } from "../dom.js";
import { count, duration, hoverTitle, plural, requestName } from "../format.js";
import { computedSeries, firstToken, ttftSeries } from "../selectors.js";

const LEADS = {
  order: "Circles reused half their prompt or more, diamonds less.",
  computed: "Only tokens that weren't cached cost time before the first one.",
};

/** The two buttons over the chart, and its lead. */
export function createFirstTokenSwitch({ onSwitch }) {
  const buttons = [...document.querySelectorAll("[data-ttft-by]")];
  for (const button of buttons) button.addEventListener("click", () => onSwitch(button.dataset.ttftBy));
  return (state, ui) => {
    for (const button of buttons) setAttribute(button, "aria-pressed", String(button.dataset.ttftBy === ui.ttftBy));
    setText(byId("ttft-lead"), LEADS[ui.ttftBy]);
    return null;
  };
}

export function buildFirstToken(state, palette, ui) {
  return ui.ttftBy === "computed" ? againstComputed(state, palette) : inOrder(state, palette);
}

/** A trace a group: `place(point, i)` is where a point stands on x, `said(point)` what its label adds. */
function traces(points, palette, place, said) {
  const styles = {
    warm: { name: "warm", symbol: "circle", color: palette.reused, line: palette.panel },
    cold: { name: "cold", symbol: "diamond", color: palette.computed, line: palette["computed-ink"] },
    null: { name: "not known", symbol: "x-thin", color: palette.muted, line: palette.muted },
  };
  return Object.entries(styles).map(([group, style]) => {
    const mine = points.map((point, i) => ({ ...point, i })).filter((point) => String(point.group) === group);
    return {
      type: "scatter", mode: "markers", name: style.name, cliponaxis: false,
      x: mine.map((point) => place(point, point.i)), y: mine.map((point) => point.ttft_ms),
      text: mine.map((point) => `${hoverTitle(point)}<br>${duration(point.ttft_ms)} · ${said(point)}${style.name}`),
      hovertemplate: "%{text}<extra></extra>",
      marker: { symbol: style.symbol, size: 9, color: style.color, line: { width: 1.5, color: style.line } },
    };
  });
}

function inOrder(state, palette) {
  const points = ttftSeries(state);
  const { warm, cold } = firstToken(state);
  const every = Math.max(1, Math.ceil(points.length / 5));
  const ticked = points.map((point, i) => ({ ...point, i })).filter(({ i }) => i % every === 0);
  return {
    data: traces(points, palette, (_, i) => i, () => ""),
    empty: points.length === 0,
    label:
      points.length === 0
        ? "No request yet"
        : `First-token time of ${plural(points.length, "request")}: median ${duration(warm.value)} warm, ${duration(cold.value)} cold`,
    layout: {
      xaxis: { tickangle: 0, tickvals: ticked.map(({ i }) => i), ticktext: ticked.map(({ id }) => requestName(id)), range: [-0.7, Math.max(5, points.length - 1) + 0.7] },
      yaxis: { ticksuffix: " ms" },
      margin: { l: 56, r: 10, t: 8, b: 26 },
    },
  };
}

function againstComputed(state, palette) {
  const points = computedSeries(state);
  const most = Math.max(16, ...points.map(({ computed }) => computed));
  return {
    data: traces(points, palette, ({ computed }) => computed, ({ computed }) => `${count(computed)} computed · `),
    empty: points.length === 0,
    label:
      points.length === 0
        ? "No request yet"
        : `First-token time of ${plural(points.length, "request")} against the prompt tokens each computed, ${count(Math.min(...points.map(({ computed }) => computed)))} to ${count(most)}`,
    layout: {
      xaxis: { tickangle: 0, nticks: 4, tickformat: ",d", range: [-0.04 * most, 1.06 * most], showgrid: true },
      yaxis: { ticksuffix: " ms" },
      margin: { l: 56, r: 10, t: 8, b: 26 },
    },
  };
}
