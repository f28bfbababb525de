/** First-token time: in the order of the requests, against what each had to compute, and its spread warm against cold. */

import { MS_TICKS, duration, hoverTitle, percent, requestName } from "../format.js";
import { fitToDraw, firstTokenGroups, quantile } from "../numbers/series.js";
import { computedSeries, firstToken, ttftSeries } from "../selectors.js";
import { t } from "../words.js";
import { requestAxis } from "./plot.js";

const styles = (palette) => ({
  warm: { name: t("charts.warm"), symbol: "circle", color: palette.reused, line: palette.panel },
  cold: { name: t("charts.cold"), symbol: "diamond", color: palette.computed, line: palette["computed-ink"] },
  null: { name: t("charts.not-known"), symbol: "x-thin", color: palette.muted, line: palette.muted },
});

/** A trace a group: `place(point, i)` is where a point stands on x, `said(point, group)` what its label says. */
function traces(points, palette, place, said) {
  return Object.entries(styles(palette)).map(([group, style]) => {
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

const MARGIN = { l: 56, r: 10, t: 8, b: 26 };

function inOrder(state, palette) {
  const points = ttftSeries(state);
  const { warm, cold } = firstToken(state);
  return {
    data: traces(points, palette, (_, i) => i, ({ ttft_ms }, group) => t("charts.ttft-said", { time: duration(ttft_ms), group })),
    empty: points.length === 0,
    label:
      points.length === 0
        ? t("charts.no-request")
        : t("charts.ttft-label", { requests: t("unit.requests", { n: points.length }), warm: duration(warm.value), cold: duration(cold.value) }),
    layout: { xaxis: requestAxis(points, requestName), yaxis: { ticksuffix: MS_TICKS }, margin: MARGIN },
  };
}

function againstComputed(state, palette, ui) {
  const points = computedSeries(state);
  const most = Math.max(16, ...points.map(({ computed }) => computed));
  const said = ({ computed, ttft_ms, ratio }, group) =>
    t("charts.ttft-said-computed", { time: duration(ttft_ms), n: computed, group: ratio === null ? group : t("charts.share-reused", { share: percent(ratio) }) });
  const markers = traces(points, palette, ({ computed }) => computed, said).map((trace) => byShare(trace, points, palette));
  return {
    data: [...fitTraces(fitToDraw(ui.fit), palette), ...markers],
    empty: points.length === 0,
    label:
      points.length === 0
        ? t("charts.no-request")
        : t("charts.ttft-label-computed", { requests: t("unit.requests", { n: points.length }), least: Math.min(...points.map(({ computed }) => computed)), most }),
    layout: {
      xaxis: { tickangle: 0, nticks: 4, tickformat: ",d", range: [-0.04 * most, 1.06 * most], showgrid: true },
      yaxis: { ticksuffix: MS_TICKS },
      margin: MARGIN,
    },
  };
}

/** Markers filled by the share that was reused: the colour of computed at nothing, of reused at all. */
function byShare(trace, points, palette) {
  const mine = points.filter(({ group }) => styles(palette)[String(group)].name === trace.name);
  if (mine.some(({ ratio }) => ratio === null)) return trace;
  const scale = [[0, palette.computed], [0.5, palette.pending], [1, palette.reused]];
  return { ...trace, marker: { ...trace.marker, color: mine.map(({ ratio }) => ratio), colorscale: scale, cmin: 0, cmax: 1, showscale: false } };
}

/** The line of the fit within its band; nothing without one. */
function fitTraces(fit, palette) {
  if (fit === null) return [];
  const x = fit.points.map(([computed]) => computed);
  const line = (i, more) => ({ type: "scatter", mode: "lines", x, y: fit.points.map((point) => point[i]), hoverinfo: "skip", line: { width: 0 }, ...more });
  return [
    line(1, {}),
    line(3, { fill: "tonexty", fillcolor: palette["reused-soft"] }),
    line(2, { name: t("charts.fit"), line: { color: palette.muted, width: 1.5, dash: "dash" } }),
  ];
}

function spread(state, palette) {
  const groups = firstTokenGroups(state);
  const known = styles(palette);
  const boxes = ["cold", "warm"].map((group) => {
    const { name, symbol, color, line } = known[group];
    return {
      type: "box", orientation: "h", name, x: groups[group].map(({ ttft_ms }) => ttft_ms), y: groups[group].map(() => name),
      boxpoints: "all", jitter: 0.5, pointpos: 0, whiskerwidth: 0.4, fillcolor: "rgba(0,0,0,0)", line: { color: group === "warm" ? color : line, width: 1.5 },
      marker: { symbol, size: 7, color, opacity: 0.75, line: { width: 1, color: line } },
      text: groups[group].map((point) => `${hoverTitle(point)}<br>${duration(point.ttft_ms)}`),
      hovertemplate: "%{text}<extra></extra>", hoveron: "points",
    };
  });
  const middle = (group) => duration(quantile(groups[group].map(({ ttft_ms }) => ttft_ms), 0.5));
  const empty = groups.warm.length + groups.cold.length === 0;
  return {
    data: boxes,
    empty,
    label: empty ? t("charts.no-request") : t("charts.spread-label", { warm: middle("warm"), cold: middle("cold"), n: groups.warm.length, m: groups.cold.length }),
    layout: {
      xaxis: { ticksuffix: MS_TICKS, rangemode: "tozero", nticks: 5, tickangle: 0, showgrid: true },
      yaxis: { type: "category", categoryarray: [known.cold.name, known.warm.name], showgrid: false },
      margin: { l: 56, r: 14, t: 4, b: 28 },
    },
  };
}

const requests = (state) => [state.requests, state.requestOrder];

export const firstTokenChart = {
  name: "first-token",
  keys: (state, ui) => [...requests(state), ui.fit, ui.ttftBy],
  build: (state, palette, ui) => (ui.ttftBy === "computed" ? againstComputed(state, palette, ui) : inOrder(state, palette)),
  topic: "chart-ttft",
  table: (state) => computedAndOrder(state),
};

export const againstChart = {
  name: "first-token-against-computed-tokens",
  keys: (state, ui) => [...requests(state), ui.fit],
  build: againstComputed,
  topic: "chart-against",
  table: (state) => computedSeries(state).map(({ id, computed, ttft_ms, ratio }) => ({ request: id, computed_tokens: computed, ttft_ms, reused_ratio: ratio })),
};

export const spreadChart = {
  name: "first-token-spread",
  keys: requests,
  build: spread,
  topic: "chart-spread",
  table: (state) => {
    const groups = firstTokenGroups(state);
    return ["warm", "cold"].flatMap((group) => groups[group].map(({ id, ttft_ms, ratio }) => ({ request: id, group, ttft_ms, reused_ratio: ratio })));
  },
};

function computedAndOrder(state) {
  const computed = new Map(computedSeries(state).map((point) => [point.id, point]));
  return ttftSeries(state, Infinity).map(({ id, ttft_ms, group }) => ({
    request: id, ttft_ms, computed_tokens: computed.get(id)?.computed ?? null, reused_ratio: computed.get(id)?.ratio ?? null, group,
  }));
}
