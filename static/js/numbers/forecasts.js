/** Forecasts against outcomes, as a running score. Pure. */

import { primaryServer, requestRows } from "../selectors.js";
import { coverageOf } from "./streams.js";

/** How many outcomes the run of marks shows. */
export const SHOWN = 40;

/**
 * {scored, right, ratio, wrongInARow, banner, drift, lastDrift, dropped, unit, lowerBound, reason}; `reason` is the code
 * of why there is no score yet. Drift is forecast less outcome, in tokens.
 */
export function forecastScore(state) {
  const server = primaryServer(state);
  const score = server?.forecasts ?? null;
  const lowerBound = server !== null && coverageOf(server) !== "complete";
  if (score === null) {
    const reason = server === null ? "no-server" : coverageOf(server) === "none" ? "no-events" : "no-outcome";
    return { scored: 0, right: null, ratio: null, wrongInARow: 0, banner: false, drift: null, lastDrift: null, dropped: null, unit: null, lowerBound, reason };
  }
  return {
    scored: score.scored,
    right: score.right,
    ratio: score.scored > 0 ? score.right / score.scored : null,
    wrongInARow: score.wrong_in_a_row,
    banner: score.banner ?? score.message !== null,
    drift: score.drift_tokens ?? null,
    lastDrift: score.last_drift_tokens ?? null,
    dropped: score.dropped_blocks,
    unit: score.unit_tokens,
    lowerBound,
    reason: score.scored > 0 ? null : "no-outcome",
  };
}

/**
 * The latest outcomes, oldest first: {id, label, predicted, cached, verdict}. `verdict` is "right", "more" (than forecast
 * came from the cache), "fewer", or "kept": at least what a lower bound said.
 */
export function forecastRun(state, limit = SHOWN) {
  const run = [];
  for (const { record } of requestRows(state)) {
    const { predicted_cached_tokens: predicted, cached_tokens: cached } = record;
    if (record.outcome === null || predicted === null || cached === null) continue;
    run.push({ id: record.id, label: record.label, predicted, cached, verdict: judged(record) });
    if (run.length === limit) break;
  }
  return run.reverse();
}

function judged({ predicted_cached_tokens: predicted, cached_tokens: cached, predicted_is_lower_bound: atLeast }) {
  if (predicted === cached) return "right";
  if (cached < predicted) return "fewer";
  return atLeast ? "kept" : "more";
}
