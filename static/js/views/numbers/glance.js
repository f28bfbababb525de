/** The readings at a glance, in the live row: since the mark by each, the score of forecasts, the event stream. */

import { byId, setAttribute, setText } from "../../dom.js";
import { UNKNOWN } from "../../format.js";
import { agreement, hitRateTable } from "../../numbers/hit_rates.js";
import { forecastScore } from "../../numbers/forecasts.js";
import { primaryServer } from "../../selectors.js";
import { t } from "../../words.js";
import { streamSummary } from "../strip.js";
import { createFacts } from "./facts.js";

export function createGlance() {
  const facts = createFacts(byId("glance-facts"));
  const said = byId("glance-said");
  let drawn = [];
  return (state, ui) => {
    const inputs = [state.rates, state.differences, state.servers, state.gaps, state.metrics, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const agreed = agreement(state);
    setText(said, t(`rates.${agreed ?? "nothing"}`).replace(/[:：]$/, "."));
    setAttribute(said, "data-tone", agreed === "differ" ? "wait" : agreed === "agree" ? "good" : null);
    facts(glanceRows(state));
    return null;
  };
}

/** Rows of the panel. Pure. */
function glanceRows(state) {
  const marked = hitRateTable(state).find(({ window }) => window === "since_mark");
  const rows = marked.cells.slice(0, 2).map((cell) => ({
    key: cell.basis,
    name: t(`glance.${cell.basis}`),
    value: cell.state === "value" ? t("glance.of", { hit: cell.hit, query: cell.query }) : UNKNOWN,
    note: cell.state === "value" ? "" : t(`reason.${cell.reason}`),
  }));
  const score = forecastScore(state);
  rows.push({
    key: "forecasts", name: t("glance.forecasts"), tone: score.banner ? "wait" : null,
    value: score.reason === null ? t("forecasts.score", { right: score.right, scored: score.scored }) : UNKNOWN,
    note: score.reason === null ? (score.lowerBound ? t("forecasts.lower-bound") : "") : t(`reason.${score.reason}`),
  });
  const server = primaryServer(state);
  if (server !== null) {
    const { tone, text } = streamSummary(server, Object.keys(state.gaps).length);
    rows.push({ key: "events", name: t("glance.events"), value: text, tone: tone === "good" ? null : tone });
  }
  return rows;
}
