/** What all charts share: layout, colours, and stretches of what is known. Pure. */

export const CONFIG = { displayModeBar: false, responsive: false, doubleClick: false, scrollZoom: false };

/** The layout that every chart begins with: `width` and `height` in px. */
export function baseLayout(palette, width, height) {
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
    legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", bgcolor: "rgba(0,0,0,0)", itemclick: false, itemdoubleclick: false },
    xaxis: { ...axis, showgrid: false },
    yaxis: { ...axis, rangemode: "tozero", nticks: 5 },
  };
}

/** `extra` over `base`, the axes of both together. */
export function merge(base, extra) {
  return { ...base, ...extra, xaxis: { ...base.xaxis, ...extra.xaxis }, yaxis: { ...base.yaxis, ...extra.yaxis } };
}

/** Stretches without an unknown in them: a trace each, so that neither line nor fill bridges what isn't known. */
export function stretches(series, isKnown) {
  const found = [[]];
  for (const point of series) {
    if (isKnown(point)) found.at(-1).push(point);
    else if (found.at(-1).length > 0) found.push([]);
  }
  return found.filter((points) => points.length > 0);
}

/** An axis of wall time that ends with the newest of `series`, at least a minute wide. */
export function timeAxis(series) {
  const times = series.map(({ at_ms }) => at_ms);
  const end = Math.max(...times);
  const range = times.length === 0 ? [0, 1] : [new Date(Math.min(...times, end - 60_000)), new Date(end)];
  return { type: "date", nticks: 3, tickangle: 0, tickformat: "%H:%M:%S", range };
}

export const datesOf = (series) => series.map(({ at_ms }) => new Date(at_ms));

/** The hatch of what was computed, as a bar's or a fill's pattern. */
export const hatch = (palette) => ({
  shape: "/", size: 6, solidity: 0.32, fgcolor: palette["computed-ink"], fillmode: "replace", bgcolor: palette.computed,
});

/** An axis of requests: where the ticks of `entries` stand and what they say. */
export function requestAxis(entries, name) {
  const every = Math.max(1, Math.ceil(entries.length / 5));
  const ticked = entries.map((_, i) => i).filter((i) => i % every === 0);
  return { tickangle: 0, tickvals: ticked, ticktext: ticked.map((i) => name(entries[i].id)), range: [-0.7, Math.max(5, entries.length - 1) + 0.7] };
}
