/** Prompt tokens by where they came from: a bar a request, and stacked over time. */

import { count, hoverTitle, requestName } from "../format.js";
import { sourceSeries } from "../numbers/series.js";
import { tokenSeries } from "../selectors.js";
import { t } from "../words.js";
import { datesOf, hatch, requestAxis, stretches, timeAxis } from "./plot.js";

function byRequest(state, palette) {
  const bars = tokenSeries(state);
  const bar = (name, marker) => ({
    type: "bar", name, x: bars.map((_, i) => i), y: bars.map((entry) => entry[name]), marker: { line: { width: 0 }, ...marker },
    text: bars.map((entry) => `${hoverTitle(entry)}<br>${t(`charts.tokens-${name}`, { n: entry[name] })}`),
    textposition: "none",
    hovertemplate: "%{text}<extra></extra>",
  });
  const sum = (name) => bars.reduce((total, entry) => total + (entry[name] ?? 0), 0);
  return {
    data: [
      bar("reused", { color: palette.reused }),
      bar("computed", { color: palette.computed, pattern: hatch(palette) }),
      bar("unknown", { color: palette.pending }),
    ],
    empty: bars.length === 0,
    label: bars.length === 0 ? t("charts.no-request") : t("charts.tokens-label", { requests: t("unit.requests", { n: bars.length }), reused: sum("reused"), computed: sum("computed") }),
    layout: { barmode: "stack", bargap: 0.25, xaxis: requestAxis(bars, requestName), yaxis: { tickformat: ",d" } },
  };
}

function bySource(state, palette) {
  const series = sourceSeries(state);
  const runs = stretches(series, ({ computed }) => computed !== null);
  const parts = [
    ["local", { color: palette.reused }, { fillcolor: palette.reused }],
    ["external", { color: palette.decode }, { fillcolor: palette.decode }],
    ["computed", { color: palette["computed-ink"] }, { fillpattern: hatch(palette) }],
  ];
  const hasExternal = series.some(({ external }) => external > 0);
  const data = runs.flatMap((points, i) =>
    parts.filter(([name]) => name !== "external" || hasExternal).map(([name, line, fill]) => ({
      type: "scatter", mode: "lines", name: t(`charts.source-${name}`), legendgroup: name, showlegend: i === 0, stackgroup: `run${i}`,
      x: datesOf(points), y: points.map((point) => point[name] ?? 0), line: { width: 0.8, shape: "hv", ...line }, ...fill,
      text: points.map((point) => count(point[name])), hovertemplate: "%{x|%H:%M:%S} · %{fullData.name} · %{text}<extra></extra>",
    })),
  );
  const last = series.at(-1);
  return {
    data,
    empty: runs.length === 0,
    label: t("charts.sources-label", { local: last?.local ?? null, external: last?.external ?? null, computed: last?.computed ?? null }),
    layout: { xaxis: { ...timeAxis(series), nticks: 5 }, yaxis: { tickformat: ",d" }, showlegend: true, margin: { l: 52, r: 12, t: 26, b: 28 } },
  };
}

export const tokensChart = {
  name: "prompt-tokens-by-request",
  keys: (state) => [state.requests, state.requestOrder],
  build: byRequest,
  topic: "chart-tokens",
  table: (state) => tokenSeries(state, Infinity).map(({ id, reused, computed, unknown }) => ({ request: id, reused_tokens: reused, computed_tokens: computed, unknown_tokens: unknown })),
};

export const sourcesChart = {
  name: "prompt-tokens-by-source",
  keys: (state) => [state.metrics],
  build: bySource,
  topic: "chart-sources",
  table: (state) =>
    sourceSeries(state).map(({ at_ms, local, external, computed }) => ({ time: new Date(at_ms).toISOString(), local_hit_tokens: local, external_hit_tokens: external, computed_tokens: computed })),
};
