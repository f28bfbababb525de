/** What the charts over time and over requests are drawn from. Pure; each answer is kept while its inputs stay. */

import { HIT_RATE_WINDOW_MS, hitRateSeries, primaryServer, rate, remember, requestRows, reusedRatio, warmth } from "../selectors.js";

/** Readings of the metrics of the first server, oldest first. */
export const points = (state) => state.metrics[state.serverOrder[0]] ?? [];

/**
 * The hit rate's windows over time, each as [{at_ms, ratio, hit, query}]: `last_minute`, `since_mark` and `lifetime` from
 * the counters at each scrape, `last_request` from each answer's usage, `last_1000_requests` as it was told here.
 */
export const hitRateWindows = remember(
  (state) => [state.metrics, state.rateLog, state.requests, state.requestOrder, state.serverOrder],
  (state) => {
    const server = primaryServer(state);
    if (server === null) return { last_request: [], last_minute: [], since_mark: [], last_1000_requests: [], lifetime: [] };
    return {
      last_request: requestRates(state),
      last_minute: hitRateSeries(state, server.id),
      since_mark: sinceMark(state, server.id),
      last_1000_requests: (state.rateLog[server.id] ?? []).flatMap(({ at_ms, rates }) =>
        rates.filter(({ window, basis }) => window === "last_1000_requests" && basis === "usage").map((reading) => ratioAt(at_ms, reading.hit_tokens, reading.query_tokens)),
      ),
      lifetime: counted(state).map((point) => ratioAt(point.at_ms, point.hit_tokens, point.query_tokens)),
    };
  },
);

const ratioAt = (at_ms, hit, query) => ({ at_ms, hit, query, ratio: query > 0 ? hit / query : null });
const counted = (state) => points(state).filter((point) => point.query_tokens !== null && point.hit_tokens !== null);

function requestRates(state) {
  const found = [];
  for (const { record } of requestRows(state)) {
    const { prompt_tokens: prompt, cached_tokens: cached, at_ms, e2e_ms, outcome } = record;
    if (outcome === null || prompt === null || cached === null || prompt === 0 || cached > prompt) continue;
    found.push({ id: record.id, label: record.label, ...ratioAt(at_ms + (e2e_ms ?? 0), cached, prompt) });
  }
  return found.reverse();
}

/** Counters as of the mark are what they are now less what was counted since; only from the mark on. */
function sinceMark(state, server) {
  const reading = rate(state, server, "since_mark", "counter");
  const readings = counted(state);
  const last = readings.at(-1);
  if (!reading || !last || typeof reading.since_ms !== "number") return [];
  const begun = { hit: last.hit_tokens - reading.hit_tokens, query: last.query_tokens - reading.query_tokens };
  return readings
    .filter((point) => point.at_ms >= reading.since_ms && point.query_tokens >= begun.query && point.hit_tokens >= begun.hit)
    .map((point) => ratioAt(point.at_ms, point.hit_tokens - begun.hit, point.query_tokens - begun.query));
}

/** Prompt tokens of the minute before each scrape by where they came from: [{at_ms, local, external, computed}]. */
export const sourceSeries = remember(
  (state) => [state.metrics, state.serverOrder],
  (state) => {
    const readings = counted(state);
    let oldest = 0;
    return readings.map((point, i) => {
      if (i > 0 && point.query_tokens < readings[i - 1].query_tokens) oldest = i;
      while (readings[oldest].at_ms < point.at_ms - HIT_RATE_WINDOW_MS) oldest += 1;
      const since = (field) => (point[field] === null || point[field] === undefined ? null : point[field] - (readings[oldest][field] ?? 0));
      const local = since("hit_tokens");
      const external = since("external_hit_tokens");
      const computed = since("query_tokens") - local - (external ?? 0);
      // Readings that contradict each other give no figure.
      return { at_ms: point.at_ms, local, external, computed: computed < 0 ? null : computed };
    });
  },
);

/** The pool in three parts at each scrape: [{at_ms, held, cached, unwritten}], in blocks, null where unknown. */
export const poolSeries = remember(
  (state) => [state.metrics, state.serverOrder],
  (state) =>
    points(state).map(({ at_ms, held_blocks, cached_blocks, unwritten_blocks }) => ({
      at_ms, held: held_blocks ?? null, cached: cached_blocks ?? null, unwritten: unwritten_blocks ?? null,
    })),
);

/** The queue at each scrape: [{at_ms, running, waiting, preempted}]; `preempted` since the scrape before, null if unknown. */
export const queueSeries = remember(
  (state) => [state.metrics, state.serverOrder],
  (state) => {
    const readings = points(state);
    return readings.map(({ at_ms, running, waiting, preemptions }, i) => {
      const before = readings[i - 1]?.preemptions ?? null;
      const known = preemptions !== null && before !== null && preemptions >= before;
      return { at_ms, running, waiting, preempted: known ? preemptions - before : null };
    });
  },
);

/** First-token times of kept requests that ended well: {warm, cold}, each [{id, label, ttft_ms, computed, ratio}]. */
export const firstTokenGroups = remember(
  (state) => [state.requests, state.requestOrder],
  (state) => {
    const groups = { warm: [], cold: [] };
    for (const { record } of requestRows(state)) {
      const group = warmth(record);
      if (record.outcome !== "ok" || group === null || record.ttft_ms === null) continue;
      const { id, label, ttft_ms } = record;
      groups[group].push({ id, label, ttft_ms, ratio: reusedRatio(record) });
    }
    return groups;
  },
);

/** The value below which a share `q` of `values` lies, between neighbours where it falls between; null for none. */
export function quantile(values, q) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  return sorted[low] + (sorted[Math.min(low + 1, sorted.length - 1)] - sorted[low]) * (at - low);
}

/**
 * The dashboard's fit of first-token time against computed tokens as what is drawn: {requests, fixed_ms, token_ms,
 * token_low_ms, token_high_ms, points}, points as [computed tokens, low, fit, high] in ms; null where there is none. Four
 * of five requests lie between low and high.
 */
export function fitToDraw(answer) {
  const fit = answer?.fit ?? null;
  if (fit === null) return null;
  const { fixed_ms, token_ms, token_low_ms, token_high_ms, early_ms, late_ms } = fit;
  const points = [fit.fewest_tokens, fit.most_tokens].map((tokens) => {
    const middle = fixed_ms + token_ms * tokens;
    return [tokens, middle + early_ms, middle, middle + late_ms];
  });
  return { requests: fit.samples, fixed_ms, token_ms, token_low_ms, token_high_ms, points };
}
