/** Hit rate over time: the last minute alone, and all five windows. */

import { RATIO_TICKS, UNKNOWN, hoverTitle, percent } from "../format.js";
import { hitRateWindows } from "../numbers/series.js";
import { hitRateSeries, primaryServer } from "../selectors.js";
import { t } from "../words.js";
import { datesOf, stretches, timeAxis } from "./plot.js";

const known = ({ ratio }) => ratio !== null;
const RATIO_AXIS = { range: [0, 1.04], tickformat: RATIO_TICKS, tickvals: [0, 0.25, 0.5, 0.75, 1] };

function lastMinute(state, palette) {
  const server = primaryServer(state);
  const series = server === null ? [] : hitRateSeries(state, server.id);
  const last = series.at(-1) ?? null;
  return {
    data: stretches(series, known).map((points) => ({
      type: "scatter", mode: "lines", x: datesOf(points), y: points.map(({ ratio }) => ratio),
      line: { color: palette.reused, width: 2.5, shape: "hv" }, fill: "tozeroy", fillcolor: palette["reused-soft"],
      hovertemplate: "%{x|%H:%M:%S} · %{text}<extra></extra>", text: points.map(({ ratio }) => percent(ratio)),
    })),
    empty: !series.some(known),
    label: t("charts.rate-label", { rate: last === null ? UNKNOWN : percent(last.ratio) }),
    layout: { xaxis: timeAxis(series), yaxis: RATIO_AXIS },
  };
}

function allWindows(state, palette) {
  const windows = hitRateWindows(state);
  const lines = {
    lifetime: { color: palette.muted, width: 1.5, dash: "dot" },
    last_1000_requests: { color: palette.muted, width: 1.5, dash: "longdash" },
    since_mark: { color: palette.text, width: 1.5, dash: "dash" },
    last_minute: { color: palette.reused, width: 2.5 },
  };
  const data = Object.entries(lines).flatMap(([window, line]) =>
    stretches(windows[window], known).map((points, i) => ({
      type: "scatter", mode: points.length > 1 ? "lines" : "markers", name: t(`rates.window.${window}`), legendgroup: window, showlegend: i === 0,
      x: datesOf(points), y: points.map(({ ratio }) => ratio), line: { ...line, shape: "hv" }, marker: { color: line.color, size: 4 },
      text: points.map(({ ratio }) => percent(ratio)), hovertemplate: "%{fullData.name} · %{x|%H:%M:%S} · %{text}<extra></extra>",
    })),
  );
  const answers = windows.last_request.filter(known);
  data.push({
    type: "scatter", mode: "markers", name: t("rates.window.last_request"), cliponaxis: false,
    x: datesOf(answers), y: answers.map(({ ratio }) => ratio),
    marker: { symbol: "circle-open", size: 7, color: palette.reused, line: { width: 1.5 } },
    text: answers.map((point) => `${hoverTitle(point)}<br>${percent(point.ratio)}`), hovertemplate: "%{text}<extra></extra>",
  });
  const times = [...windows.last_minute, ...windows.lifetime];
  return {
    data,
    empty: !data.some(({ x }) => x.length > 0),
    label: t("charts.windows-label", Object.fromEntries(Object.keys(windows).map((window) => [window, percent(windows[window].at(-1)?.ratio ?? null)]))),
    layout: { xaxis: { ...timeAxis(times.length > 0 ? times : answers), nticks: 6 }, yaxis: RATIO_AXIS, showlegend: true, margin: { l: 46, r: 12, t: 26, b: 28 } },
  };
}

const rows = (window, series) =>
  series.map(({ at_ms, hit, query, ratio }) => ({ time: new Date(at_ms).toISOString(), window, hit_tokens: hit, query_tokens: query, ratio }));

export const rateChart = {
  name: "hit-rate-last-minute",
  keys: (state) => [state.metrics, state.servers],
  build: lastMinute,
  topic: "chart-rate",
  table: (state) => rows("last_minute", hitRateSeries(state, state.serverOrder[0])),
};

export const windowsChart = {
  name: "hit-rate-windows",
  keys: (state) => [state.metrics, state.rateLog, state.requests, state.requestOrder],
  build: allWindows,
  topic: "chart-windows",
  table: (state) => Object.entries(hitRateWindows(state)).flatMap(([window, series]) => rows(window, series)),
};
