/**
 * A Plotly chart: drawn only while it can be seen, only when what it shows has changed, and not more often than its
 * interval. A chart's definition is {name, topic, keys(state, ui), build(state, palette, ui), table(state, ui)}: `build`
 * answers {data, layout, label, empty}, `table` the rows behind it, `keys` what both depend on.
 */

import { setAttribute, setHidden } from "../dom.js";
import { throttle } from "../frame.js";
import { chartMenu } from "./menu.js";
import { CONFIG, baseLayout, merge } from "./plot.js";

export const INTERVAL_MS = 500;

/** sees(node): whether it is in the window, or about to be; `onChange` is called when that changes for one watched. */
export function createSight(onChange) {
  const seen = new Set();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target);
      onChange();
    },
    { rootMargin: "160px" },
  );
  return { watch: (node) => observer.observe(node), sees: (node) => seen.has(node) };
}

/** The view of the chart in `node`, an element within a section that has a head and an empty state. */
export function createChart(node, definition, { getPalette, sight, interval = INTERVAL_MS }) {
  const section = node.closest("section");
  const empty = section.querySelector(".chart-empty");
  const gate = throttle(interval);
  let drawn = [];
  let latest = null;
  section.querySelector(".panel-head").append(chartMenu(definition, { getPalette, current: () => latest, title: section.querySelector("h2, h3") }));
  sight.watch(node);
  return (state, ui, now) => {
    latest = { state, ui };
    if (!window.Plotly) return null;
    const { clientWidth: width, clientHeight: height } = node;
    if (width === 0 || !(ui.printing || sight.sees(node))) return null;
    const inputs = [...definition.keys(state, ui), width, height, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    const wait = gate.wait(now);
    if (wait > 0) return wait;
    const begun = performance.now();
    drawn = inputs;
    const palette = getPalette();
    const chart = definition.build(state, palette, ui);
    setAttribute(node, "aria-label", chart.label);
    setHidden(empty, !chart.empty);
    const layout = chart.empty ? { xaxis: { visible: false }, yaxis: { visible: false } } : chart.layout;
    window.Plotly.react(node, chart.empty ? [] : chart.data, merge(baseLayout(palette, width, height), layout), CONFIG);
    gate.drawn(now, performance.now() - begun);
    return null;
  };
}
