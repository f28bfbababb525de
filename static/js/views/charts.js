/** The three Plotly charts. Each is redrawn at most four times a second, and only when what it shows has changed. */

import { byId, setAttribute, setHidden } from "../dom.js";
import { RATIO_TICKS, UNKNOWN, hoverTitle, percent, requestName } from "../format.js";
import { throttle } from "../frame.js";
import { hitRateSeries, primaryServer, tokenSeries } from "../selectors.js";
import { t } from "../words.js";
import { buildFirstToken, createFirstTokenSwitch } from "./first_token_chart.js";

const INTERVAL_MS = 250;
const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false };

/** build(state, palette, ui) -> {data, layout, label, empty}; keys(state, ui): what it depends on. */
function createChart(id, keys, build, getPalette) {
  const node = byId(id);
  const empty = node.parentElement.querySelector(".chart-empty");
  const gate = throttle(INTERVAL_MS);
  let drawn = [];
  return (state, ui, now) => {
    if (!window.Plotly) return 60;
    const width = node.clientWidth;
    const height = node.clientHeight;
    if (width === 0) return null;
    const inputs = [...keys(state, ui), width, height, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    const wait = gate.wait(now);
    if (wait > 0) return wait;
    const begun = performance.now();
    drawn = inputs;
    const palette = getPalette();
    const chart = build(state, palette, ui);
    setAttribute(node, "aria-label", chart.label);
    setHidden(empty, !chart.empty);
    const layout = chart.empty ? { xaxis: { visible: false }, yaxis: { visible: false } } : chart.layout;
    window.Plotly.react(node, chart.empty ? [] : chart.data, merge(baseLayout(palette, width, height), layout), CONFIG);
    gate.drawn(now, performance.now() - begun);
    return null;
  };
}

function merge(base, extra) {
  return { ...base, ...extra, xaxis: { ...base.xaxis, ...extra.xaxis }, yaxis: { ...base.yaxis, ...extra.yaxis } };
}

function baseLayout(palette, width, height) {
  const axis = {
    fixedrange: true, zeroline: false, gridcolor: palette.grid, linecolor: palette.line, tickcolor: palette.line,
    automargin: false,
  };
  return {
    width, height,
    margin: { l: 46, r: 10, t: 8, b: 28 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: palette.font, size: 11 * palette.scale, color: palette.muted },
    hoverlabel: { bgcolor: palette.panel, bordercolor: palette.line, font: { family: palette.font, size: 12 * palette.scale, color: palette.text } },
    showlegend: false,
    xaxis: { ...axis, showgrid: false },
    yaxis: { ...axis, rangemode: "tozero", nticks: 5 },
  };
}

function buildRate(state, palette) {
  const server = primaryServer(state);
  const series = server === null ? [] : hitRateSeries(state, server.id);
  const known = series.filter((point) => point.ratio !== null);
  const last = series.at(-1) ?? null;
  return {
    data: stretches(series).map((points) => ({
      type: "scatter", mode: "lines", x: points.map((point) => new Date(point.at_ms)), y: points.map((point) => point.ratio),
      line: { color: palette.reused, width: 2.5, shape: "hv" }, fill: "tozeroy", fillcolor: palette["reused-soft"],
      hovertemplate: "%{x|%H:%M:%S} · %{text}<extra></extra>", text: points.map((point) => percent(point.ratio)),
    })),
    empty: known.length === 0,
    label: t("charts.rate-label", { rate: last === null ? UNKNOWN : percent(last.ratio) }),
    layout: {
      xaxis: { type: "date", nticks: 3, tickangle: 0, tickformat: "%H:%M:%S", range: rateRange(series) },
      yaxis: { range: [0, 1.04], tickformat: RATIO_TICKS, tickvals: [0, 0.25, 0.5, 0.75, 1] },
    },
  };
}

/** Stretches without an unknown in them: one trace each, so that neither line nor fill bridges what isn't known. */
function stretches(series) {
  const found = [[]];
  for (const point of series) {
    if (point.ratio !== null) found.at(-1).push(point);
    else if (found.at(-1).length > 0) found.push([]);
  }
  return found.filter((points) => points.length > 0);
}

/** At least a minute wide, at most the fifteen that are kept. */
function rateRange(series) {
  if (series.length === 0) return [0, 1];
  const end = series.at(-1).at_ms;
  return [new Date(Math.min(series[0].at_ms, end - 60_000)), new Date(end)];
}

function buildTokens(state, palette) {
  const bars = tokenSeries(state);
  const x = bars.map((_, i) => i);
  const bar = (name, values, marker) => ({
    type: "bar", name, x, y: values, marker: { line: { width: 0 }, ...marker },
    text: bars.map((entry, i) => `${hoverTitle(entry)}<br>${t(`charts.tokens-${name}`, { n: values[i] })}`),
    textposition: "none",
    hovertemplate: "%{text}<extra></extra>",
  });
  const every = Math.max(1, Math.ceil(bars.length / 5));
  const ticked = x.filter((i) => i % every === 0);
  const sum = (name) => bars.reduce((total, entry) => total + (entry[name] ?? 0), 0);
  return {
    data: [
      bar("reused", bars.map((entry) => entry.reused), { color: palette.reused }),
      bar("computed", bars.map((entry) => entry.computed), {
        color: palette.computed,
        pattern: { shape: "/", size: 6, solidity: 0.32, fgcolor: palette["computed-ink"], fillmode: "replace", bgcolor: palette.computed },
      }),
      bar("unknown", bars.map((entry) => entry.unknown), { color: palette.pending }),
    ],
    empty: bars.length === 0,
    label: bars.length === 0 ? t("charts.no-request") : t("charts.tokens-label", { requests: t("unit.requests", { n: bars.length }), reused: sum("reused"), computed: sum("computed") }),
    layout: {
      barmode: "stack", bargap: 0.25,
      xaxis: { tickangle: 0, tickvals: ticked, ticktext: ticked.map((i) => requestName(bars[i].id)), range: [-0.7, Math.max(5, bars.length - 1) + 0.7] },
      yaxis: { tickformat: ",d" },
    },
  };
}

export function createCharts({ getPalette, onFirstTokenBy }) {
  const requests = (state) => [state.requests, state.requestOrder];
  return [
    createFirstTokenSwitch({ onSwitch: onFirstTokenBy }),
    createChart("chart-ttft", (state, ui) => [...requests(state), ui.ttftBy], buildFirstToken, getPalette),
    createChart("chart-rate", (state) => [state.metrics, state.servers], buildRate, getPalette),
    createChart("chart-tokens", requests, buildTokens, getPalette),
  ];
}
