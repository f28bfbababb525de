/** The pool in three parts over time, and the queue with its preemptions. */

import { count } from "../format.js";
import { poolParts } from "../numbers/pool.js";
import { poolSeries, queueSeries } from "../numbers/series.js";
import { t } from "../words.js";
import { datesOf, stretches, timeAxis } from "./plot.js";

/** Of the pool, at most so much is drawn above what was used: a mostly empty pool would hide the rest. */
const ROOM = 1.6;

function poolOverTime(state, palette) {
  const series = poolSeries(state);
  const parts = [["held", palette["cell-running"]], ["cached", palette["cell-few"]], ["unwritten", palette["cell-empty"]]];
  const runs = stretches(series, ({ held, cached, unwritten }) => held !== null && cached !== null && unwritten !== null);
  const data = runs.flatMap((points, i) =>
    parts.map(([name, color]) => ({
      type: "scatter", mode: "lines", name: t(`pool.part.${name}`), legendgroup: name, showlegend: i === 0, stackgroup: `run${i}`,
      x: datesOf(points), y: points.map((point) => point[name]), line: { width: 0.6, shape: "hv", color: palette.line }, fillcolor: color,
      text: points.map((point) => count(point[name])), hovertemplate: "%{x|%H:%M:%S} · %{fullData.name} · %{text}<extra></extra>",
    })),
  );
  const { total } = poolParts(state);
  const used = Math.max(1, ...runs.flat().map(({ held, cached }) => held + cached));
  const top = total !== null && ROOM * used > 0.6 * total ? total : Math.max(8, ROOM * used);
  const last = series.at(-1);
  return {
    data,
    empty: runs.length === 0,
    label: t("charts.pool-label", { held: last?.held ?? null, cached: last?.cached ?? null, unwritten: last?.unwritten ?? null, total }),
    layout: {
      xaxis: { ...timeAxis(series), nticks: 5 }, yaxis: { tickformat: ",d", range: [0, top] }, showlegend: true,
      margin: { l: 52, r: 12, t: 26, b: 28 },
      annotations: top === total ? [] : [{ text: t("charts.pool-above", { total }), x: 1, y: 1, xref: "paper", yref: "paper", xanchor: "right", yanchor: "top", showarrow: false }],
    },
  };
}

function queueOverTime(state, palette) {
  const series = queueSeries(state);
  const line = (name, style) =>
    stretches(series, (point) => point[name] !== null && point[name] !== undefined).map((points, i) => ({
      type: "scatter", mode: "lines", name: t(`charts.queue-${name}`), legendgroup: name, showlegend: i === 0,
      x: datesOf(points), y: points.map((point) => point[name]), line: { shape: "hv", ...style },
      text: points.map((point) => count(point[name])), hovertemplate: "%{x|%H:%M:%S} · %{fullData.name} · %{text}<extra></extra>",
    }));
  const preempted = series.filter((point) => point.preempted > 0);
  const bars = {
    type: "bar", name: t("charts.queue-preempted"), x: datesOf(preempted), y: preempted.map((point) => point.preempted),
    marker: { color: palette.evicted }, showlegend: true, width: 1500,
    text: preempted.map((point) => count(point.preempted)), textposition: "none", hovertemplate: "%{x|%H:%M:%S} · %{fullData.name} · %{text}<extra></extra>",
  };
  const lines = [...line("running", { color: palette.text, width: 2 }), ...line("waiting", { color: palette.muted, width: 2, dash: "dot" })];
  const last = series.at(-1);
  const most = Math.max(3, ...series.flatMap(({ running, waiting, preempted: n }) => [running ?? 0, waiting ?? 0, n ?? 0]));
  return {
    data: [bars, ...lines],
    empty: lines.length === 0,
    label: t("charts.queue-label", { running: last?.running ?? null, waiting: last?.waiting ?? null, preempted: series.some((point) => point.preempted !== null) ? preempted.reduce((sum, point) => sum + point.preempted, 0) : null }),
    layout: { xaxis: { ...timeAxis(series), nticks: 5 }, yaxis: { tickformat: ",d", range: [0, 1.1 * most] }, showlegend: true, margin: { l: 46, r: 12, t: 26, b: 28 } },
  };
}

export const poolChart = {
  name: "pool-in-three-parts",
  keys: (state) => [state.metrics, state.servers],
  build: poolOverTime,
  topic: "chart-pool",
  table: (state) => poolSeries(state).map(({ at_ms, held, cached, unwritten }) => ({ time: new Date(at_ms).toISOString(), held_blocks: held, cached_blocks: cached, unwritten_blocks: unwritten })),
};

export const queueChart = {
  name: "queue-and-preemptions",
  keys: (state) => [state.metrics],
  build: queueOverTime,
  topic: "chart-queue",
  table: (state) => queueSeries(state).map(({ at_ms, running, waiting, preempted }) => ({ time: new Date(at_ms).toISOString(), running, waiting, preempted })),
};
