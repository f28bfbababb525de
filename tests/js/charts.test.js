/** Charts: what is handed out, and that what isn't known isn't drawn. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { fileName, pictureLayout, toCsv, toJson } from "../../static/js/charts/export.js";
import { againstChart, firstTokenChart, spreadChart } from "../../static/js/charts/first_token.js";
import { poolChart, queueChart } from "../../static/js/charts/pool.js";
import { merge, stretches, timeAxis } from "../../static/js/charts/plot.js";
import { rateChart, windowsChart } from "../../static/js/charts/rates.js";
import { sourcesChart, tokensChart } from "../../static/js/charts/tokens.js";
import { initialState, reduceAll } from "../../static/js/store.js";
import { initialUi } from "../../static/js/ui_state.js";
import { createFitAsker } from "../../static/js/views/numbers/fit_asker.js";
import { fitWords } from "../../static/js/views/numbers/times.js";
import { golden, like } from "./golden.js";

const ALL = [firstTokenChart, rateChart, tokensChart, windowsChart, sourcesChart, againstChart, spreadChart, poolChart, queueChart];
const palette = new Proxy({}, { get: (_, name) => (name === "scale" ? 1 : `color-${String(name)}`) });
const blank = golden("metrics.sampled").data.point;
const sampled = (seconds, fields) => like("metrics.sampled", { point: { ...blank, at_ms: seconds * 1000, ...fields } });
const MARKUP = "<img src=x onerror=alert(1)>";

function filled() {
  const record = { ...golden("request.finished").data.record, label: MARKUP };
  return reduceAll(initialState(), [
    golden("server.changed"),
    like("request.finished", { record }),
    like("request.finished", { record: { ...record, id: "r-11", reused_blocks: 0, cached_tokens: 0 } }),
    golden("hit_rate.updated"),
    sampled(10, { query_tokens: 0, hit_tokens: 0, preemptions: 0, held_blocks: 1, cached_blocks: 2, unwritten_blocks: 3, pool_blocks: 6 }),
    sampled(11, { query_tokens: 100, hit_tokens: 40, preemptions: 2, held_blocks: 2, cached_blocks: 2, unwritten_blocks: 2, pool_blocks: 6 }),
  ]);
}

test("without anything known each chart is empty, and says so", () => {
  for (const { name, build, table } of ALL) {
    const chart = build(initialState(), palette, initialUi());
    assert.equal(chart.empty, true, name);
    assert.ok(chart.label.length > 0 && !chart.label.includes("{"), name);
    assert.deepEqual(table(initialState(), initialUi()), [], name);
  }
});

test("each chart draws what is known, takes markup as text, and hands out rows of one shape without prompt text", () => {
  const state = filled();
  for (const { name, build, table } of ALL) {
    const chart = build(state, palette, initialUi());
    assert.equal(chart.empty, false, name);
    assert.ok(!JSON.stringify(chart.data).includes("<img"), name);
    assert.ok(!chart.label.includes("{") && !chart.label.includes("NaN"), `${name}: ${chart.label}`);
    const rows = table(state, initialUi());
    assert.ok(rows.length > 0, name);
    for (const row of rows) assert.deepEqual(Object.keys(row), Object.keys(rows[0]), name);
    assert.ok(rows.every((row) => Object.values(row).every((value) => value !== undefined)), name);
    assert.ok(!JSON.stringify(rows).includes("img"), name);
  }
});

test("no line and no fill bridges what isn't known", () => {
  const series = [{ v: 1 }, { v: null }, { v: null }, { v: 2 }, { v: 3 }];
  assert.deepEqual(stretches(series, ({ v }) => v !== null), [[{ v: 1 }], [{ v: 2 }, { v: 3 }]]);
  const gap = { held_blocks: null, cached_blocks: null, unwritten_blocks: null };
  const known = { held_blocks: 1, cached_blocks: 2, unwritten_blocks: 3, pool_blocks: 6 };
  const state = reduceAll(initialState(), [golden("server.changed"), sampled(1, known), sampled(2, gap), sampled(3, known)]);
  const { data } = poolChart.build(state, palette, initialUi());
  assert.equal(data.length, 6);
  assert.equal(new Set(data.map(({ stackgroup }) => stackgroup)).size, 2);
  for (const { y } of data) assert.ok(y.every((value) => typeof value === "number"));
});

test("the pool's axis follows what is used, and says what is above it", () => {
  const state = (cached) => reduceAll(initialState(), [golden("server.changed"), sampled(1, { held_blocks: 0, cached_blocks: cached, unwritten_blocks: 5305 - cached, pool_blocks: 5305 })]);
  const axis = (cached) => poolChart.build(state(cached), palette, initialUi()).layout;
  assert.deepEqual(axis(100).yaxis.range, [0, 160]);
  assert.match(axis(100).annotations[0].text, /5,305/);
  assert.deepEqual(axis(4000).yaxis.range, [0, 5305]);
  assert.deepEqual(axis(4000).annotations, []);
});

test("the fit is drawn within its band where there is one", () => {
  const fit = { samples: 14, fixed_ms: 31, token_ms: 0.25, token_low_ms: 0.2, token_high_ms: 0.3, early_ms: -6, late_ms: 8, fewest_tokens: 0, most_tokens: 100 };
  const ui = { ...initialUi(), fit: { samples: [], fit, missing: null } };
  const lines = againstChart.build(filled(), palette, ui).data.filter(({ mode }) => mode === "lines");
  assert.deepEqual(lines.map(({ y }) => y), [[25, 50], [39, 64], [31, 56]]);
  assert.match(fitWords(ui.fit), /14 requests: 31 ms, and 0.250 ms/);
  assert.equal(fitWords({ fit: null, missing: "Too few." }), "Too few.");
  assert.equal(againstChart.build(filled(), palette, initialUi()).data.filter(({ mode }) => mode === "lines").length, 0);
});

test("CSV: unknown is empty, 0 is 0, quotes are doubled, and nothing begins like a formula", () => {
  assert.equal(toCsv([{ a: 1, b: null }, { a: 0, b: 'x,"y"' }]), 'a,b\r\n1,\r\n0,"x,""y"""\r\n');
  assert.equal(toCsv([{ request: "=1+1", n: -3 }]), "request,n\r\n'=1+1,-3\r\n");
  assert.equal(toCsv([]), "\r\n");
});

test("JSON says what it is and where it comes from; a file's name says when", () => {
  const told = JSON.parse(toJson({ name: "pool", about: { window: "w", source: "s", formula: "f" }, server: "http://x", at_ms: 0, rows: [{ a: null }] }));
  assert.deepEqual(told, { chart: "pool", server: "http://x", window: "w", source: "s", formula: "f", exported_at: "1970-01-01T00:00:00.000Z", rows: [{ a: null }] });
  assert.equal(fileName("pool", 0, "csv"), "prefixscope-pool-19700101T000000Z.csv");
});

test("a picture stands alone: title, source, an opaque ground; what the chart says itself stays", () => {
  const layout = pictureLayout({ annotations: [{ text: "mine" }], margin: { l: 90 } }, palette, { title: "T", source: "S" }, { width: 9, height: 5 });
  assert.equal(layout.title.text, "T");
  assert.deepEqual(layout.annotations.map(({ text }) => text), ["mine", "S"]);
  assert.deepEqual([layout.width, layout.margin.l, layout.paper_bgcolor], [9, 90, "color-panel"]);
});

test("an axis of time is at least a minute wide; layouts are put together axis by axis", () => {
  assert.deepEqual(timeAxis([{ at_ms: 100_000 }]).range, [new Date(40_000), new Date(100_000)]);
  assert.deepEqual(timeAxis([]).range, [0, 1]);
  assert.deepEqual(merge({ a: 1, xaxis: { b: 1 }, yaxis: {} }, { xaxis: { c: 2 } }), { a: 1, xaxis: { b: 1, c: 2 }, yaxis: {} });
});

test("the fit is asked for while it is shown, after each answer, and not too often", () => {
  let asked = 0;
  const view = createFitAsker({ ask: () => (asked += 1) });
  const shown = { ...initialUi(), numbers: "ttft" };
  assert.equal(view(filled(), initialUi(), 0), null);
  assert.equal(asked, 0);
  const state = filled();
  view(state, shown, 0);
  view(state, shown, 100);
  assert.equal(asked, 1);
  const more = reduceAll(state, [like("request.finished", { record: { ...golden("request.finished").data.record, id: "r-12" } })]);
  assert.equal(view(more, shown, 1000), 4000);
  assert.equal(view(more, shown, 5000), null);
  assert.equal(asked, 2);
});
