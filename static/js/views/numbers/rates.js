/** The table of hit rates: five windows by three readings, and where those disagree. */

import { byId, make, setAttribute, setChildren, setHidden, setStyle, setText } from "../../dom.js";
import { UNKNOWN, clock, count, percent } from "../../format.js";
import { READINGS, WINDOWS, agreement, differences, engineRows, hitRateTable } from "../../numbers/hit_rates.js";
import { hasWords, language, t } from "../../words.js";
import { infoButton } from "../info.js";

/** What explains each reading. */
const COLUMNS = { counter: { topic: "rates-counter" }, usage: { topic: "rates-usage" }, inferred: { topic: "rates-inferred" } };

/** What a cell says: {ratio, parts}. Pure. */
function cellWords(cell) {
  if (cell.state === "gauge") return { ratio: percent(cell.ratio), parts: t("reason.gauge-only") };
  if (cell.state !== "value") return { ratio: UNKNOWN, parts: t(`reason.${cell.reason}`) };
  if (cell.doubtful) return { ratio: t("rates.doubtful", { rate: percent(cell.ratio) }), parts: t("rates.doubtful-parts", { hit: cell.hit, query: cell.query }) };
  const ratio = cell.atLeast ? t("rates.at-least", { rate: percent(cell.ratio) }) : percent(cell.ratio);
  const parts = t("rates.parts", { hit: cell.hit, query: cell.query });
  return { ratio, parts: cell.staleMs === null ? parts : t("rates.stale", { parts, time: clock(cell.staleMs) }) };
}

/** {what, why} of a disagreement. Pure. */
function differenceWords(difference) {
  const { window, first, second, hit, query, requests, causes, text } = difference;
  const known = causes.filter((cause) => hasWords(`rates.cause.${cause}`));
  if (known.length < causes.length && language() === "en") return { what: text, why: "" };
  const more = (tokens) => t(tokens < 0 ? "rates.fewer" : "rates.more", { n: Math.abs(tokens) });
  const what = t("rates.difference", {
    window: t(`rates.window.${window}`), first: t(`rates.reading.${first}`), second: t(`rates.reading.${second}`),
    query: more(query), hit: more(hit), requests: t("unit.requests", { n: requests }),
  });
  return { what, why: known.length === 0 ? t("rates.no-cause") : known.map((cause) => t(`rates.cause.${cause}`)).join(" ") };
}

export function createRates({ onMark }) {
  const cells = buildTable(byId("rates-table"));
  const list = byId("differences");
  const said = byId("rates-said");
  byId("mark").addEventListener("click", onMark);
  let drawn = [];
  let listed = "";
  return (state, ui) => {
    if (ui.numbers !== "rates") return null;
    const inputs = [state.rates, state.differences, state.servers, state.metrics, ui.paint, ui.marking];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    for (const row of hitRateTable(state)) drawRow(cells[row.window], row);
    const agreed = agreement(state);
    setText(said, ui.marking ?? t(`rates.${agreed ?? "nothing"}`));
    setAttribute(said, "data-tone", agreed === "differ" ? "wait" : agreed === "agree" ? "good" : null);
    drawEngines(byId("engines"), engineRows(state));
    const found = differences(state).map((difference) => ({ key: difference.key, ...differenceWords(difference) }));
    if (JSON.stringify(found) !== listed) {
      listed = JSON.stringify(found);
      setChildren(list, found.map(({ key, what, why }) => make("li", { "data-difference": key }, make("p", {}, what), make("p", { class: "why" }, why))));
      setHidden(list, found.length === 0);
    }
    return null;
  };
}

function buildTable(table) {
  const column = (basis) =>
    make("th", { scope: "col" }, make("span", { "data-t": `rates.reading.${basis}` }, t(`rates.reading.${basis}`)), infoButton(COLUMNS[basis].topic));
  table.append(make("thead", {}, make("tr", {}, make("th", { scope: "col", "data-t": "rates.window" }, t("rates.window")), ...READINGS.map(column))));
  const body = make("tbody");
  table.append(body);
  const rows = {};
  for (const window of WINDOWS) {
    const name = `rates.window.${window}`;
    const since = make("small");
    const row = make("tr", { "data-window": window }, make("th", { scope: "row" }, make("span", { "data-t": name }, t(name)), since));
    const readings = READINGS.map((basis) => {
      const parts = { ratio: make("b"), parts: make("span", { class: "rate-parts" }), meter: make("i"), label: make("span", { class: "rate-reading", "data-t": `rates.reading.${basis}` }, t(`rates.reading.${basis}`)) };
      const cell = make("td", { "data-basis": basis }, parts.label, parts.ratio, parts.parts, make("span", { class: "meter", "aria-hidden": "true" }, parts.meter));
      row.append(cell);
      return { cell, ...parts };
    });
    body.append(row);
    rows[window] = { since, readings };
  }
  return rows;
}

function drawRow({ since, readings }, row) {
  const counted = row.cells.find(({ requests }) => requests !== null && requests > 1)?.requests ?? null;
  const parts = [row.since_ms === null ? null : t("rates.since", { time: clock(row.since_ms) }), counted === null ? null : t("unit.requests", { n: counted })];
  setText(since, parts.filter((part) => part !== null).join(" · "));
  readings.forEach((nodes, i) => {
    const words = cellWords(row.cells[i]);
    setText(nodes.ratio, words.ratio);
    setText(nodes.parts, words.parts);
    setAttribute(nodes.cell, "data-state", row.cells[i].state);
    setAttribute(nodes.cell, "data-stale", row.cells[i].staleMs !== null);
    setStyle(nodes.meter, "width", `${(100 * (row.cells[i].ratio ?? 0)).toFixed(1)}%`);
  });
}

/** A row an engine, where a server has several. */
function drawEngines(place, rows) {
  setHidden(place, rows.length === 0);
  if (rows.length === 0) return;
  const head = ["engine", "rate", "running", "waiting", "held"].map((name) => make("th", { scope: "col" }, t(`rates.engine.${name}`)));
  const cells = ({ engine, hit, query, ratio, running, waiting, held }) => [
    engine, t("rates.engine.of", { rate: percent(ratio), hit, query }), count(running), count(waiting), percent(held),
  ];
  place.firstElementChild.replaceChildren(
    make("caption", {}, t("rates.engines")),
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row).map((text) => make("td", {}, text))))),
  );
}
