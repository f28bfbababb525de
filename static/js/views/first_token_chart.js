/** What the first-token chart shows: the times in the order of the requests, or against what each had to compute. */

import { byId, setAttribute, setText } from "../dom.js";
import { MS_TICKS, duration, hoverTitle, requestName } from "../format.js";
import { computedSeries, firstToken, ttftSeries } from "../selectors.js";
import { t } from "../words.js";

/** The two buttons over the chart, and its lead. */
export function createFirstTokenSwitch({ onSwitch }) {
  const buttons = [...document.querySelectorAll("[data-ttft-by]")];
  for (const button of buttons) button.addEventListener("click", () => onSwitch(button.dataset.ttftBy));
  return (state, ui) => {
    for (const button of buttons) setAttribute(button, "aria-pressed", String(button.dataset.ttftBy === ui.ttftBy));
    setText(byId("ttft-lead"), t(`charts.ttft-lead-${ui.ttftBy}`));
    return null;
  };
}

export function buildFirstToken(state, palette, ui) {
  return ui.ttftBy === "computed" ? againstComputed(state, palette) : inOrder(state, palette);
}

/** A trace a group: `place(point, i)` is where a point stands on x, `said(point, group)` what its label says. */
function traces(points, palette, place, said) {
  const styles = {
    warm: { name: t("charts.warm"), symbol: "circle", color: palette.reused, line: palette.panel },
    cold: { name: t("charts.cold"), symbol: "diamond", color: palette.computed, line: palette["computed-ink"] },
    null: { name: t("charts.not-known"), symbol: "x-thin", color: palette.muted, line: palette.muted },
  };
  return Object.entries(styles).map(([group, style]) => {
    const mine = points.map((point, i) => ({ ...point, i })).filter((point) => String(point.group) === group);
    return {
      type: "scatter", mode: "markers", name: style.name, cliponaxis: false,
      x: mine.map((point) => place(point, point.i)), y: mine.map((point) => point.ttft_ms),
      text: mine.map((point) => `${hoverTitle(point)}<br>${said(point, style.name)}`),
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
    data: traces(points, palette, (_, i) => i, ({ ttft_ms }, group) => t("charts.ttft-said", { time: duration(ttft_ms), group })),
    empty: points.length === 0,
    label:
      points.length === 0
        ? t("charts.no-request")
        : t("charts.ttft-label", { requests: t("unit.requests", { n: points.length }), warm: duration(warm.value), cold: duration(cold.value) }),
    layout: {
      xaxis: { tickangle: 0, tickvals: ticked.map(({ i }) => i), ticktext: ticked.map(({ id }) => requestName(id)), range: [-0.7, Math.max(5, points.length - 1) + 0.7] },
      yaxis: { ticksuffix: MS_TICKS },
      margin: { l: 56, r: 10, t: 8, b: 26 },
    },
  };
}

function againstComputed(state, palette) {
  const points = computedSeries(state);
  const most = Math.max(16, ...points.map(({ computed }) => computed));
  return {
    data: traces(points, palette, ({ computed }) => computed, ({ computed, ttft_ms }, group) => t("charts.ttft-said-computed", { time: duration(ttft_ms), n: computed, group })),
    empty: points.length === 0,
    label:
      points.length === 0
        ? t("charts.no-request")
        : t("charts.ttft-label-computed", { requests: t("unit.requests", { n: points.length }), least: Math.min(...points.map(({ computed }) => computed)), most }),
    layout: {
      xaxis: { tickangle: 0, nticks: 4, tickformat: ",d", range: [-0.04 * most, 1.06 * most], showgrid: true },
      yaxis: { ticksuffix: MS_TICKS },
      margin: { l: 56, r: 10, t: 8, b: 26 },
    },
  };
}
