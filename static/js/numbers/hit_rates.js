/**
 * The hit rate, one definition: prompt tokens found cached over prompt tokens looked up. Five named windows, three
 * readings kept apart, every cell with its numerator and denominator, or with why there is none. Pure.
 */

import { cachesOf, primaryServer, rate } from "../selectors.js";
import { coverageOf } from "./streams.js";

export const WINDOWS = ["last_request", "last_minute", "since_mark", "last_1000_requests", "lifetime"];
export const READINGS = ["counter", "usage", "inferred"];

/** Readings that a window can't have, whatever the server exports: counters know no single requests, we know no life. */
const NEVER = {
  counter: { last_request: "counters-know-no-request", last_1000_requests: "counters-know-no-request" },
  usage: { lifetime: "began-before-us" },
  inferred: { lifetime: "began-before-us" },
};

/**
 * A row a window: {window, since_ms, cells}, a cell a reading: {basis, state, hit, query, ratio, requests, atLeast,
 * doubtful, staleMs, reason}. `state` is "value", "idle" (nothing was looked up), "never" (a window that this reading can't have), "gauge"
 * (a ratio without its parts) or "unknown"; `reason` is the code of why, for all but "value".
 */
export function hitRateTable(state) {
  const server = primaryServer(state);
  return WINDOWS.map((window) => {
    const cells = READINGS.map((basis) => cell(state, server, window, basis));
    return { window, since_ms: server === null ? null : sinceOf(state, server, window), cells };
  });
}

function sinceOf(state, server, window) {
  for (const basis of READINGS) {
    const since = rate(state, server.id, window, basis)?.since_ms;
    if (typeof since === "number") return since;
  }
  return null;
}

function cell(state, server, window, basis) {
  const nothing = { basis, hit: null, query: null, ratio: null, requests: null, atLeast: false, doubtful: false, staleMs: null };
  const never = NEVER[basis][window];
  if (never) return { ...nothing, state: "never", reason: never };
  const reading = server === null ? null : rate(state, server.id, window, basis);
  if (reading === null) return withoutReading(state, server, window, basis, nothing);
  const { hit_tokens: hit, query_tokens: query, requests = null } = reading;
  const idle = query === 0;
  const atLeast = basis === "inferred" && coverageOf(server) !== "complete";
  return {
    basis, hit, query, requests, atLeast,
    // Where the metrics can't be read any more: when they were, last.
    staleMs: basis === "counter" && server.metrics_state === "failed" ? server.metrics_at_ms : null,
    doubtful: basis === "counter" && hit === 0 && !idle && contradicted(server),
    // From the very parts that stand beside it.
    ratio: idle ? null : hit / query,
    state: idle ? "idle" : "value",
    reason: idle ? "idle" : null,
  };
}

/** A 0 of counters that latency contradicts: it isn't to be relied on. */
export const contradicted = (server) => (server?.notices ?? []).some(({ code }) => code === "counter_contradicts_latency");

function withoutReading(state, server, window, basis, nothing) {
  const gauge = basis === "counter" && window === "lifetime" ? latest(state, server)?.lifetime_hit_ratio : null;
  if (typeof gauge === "number") return { ...nothing, state: "gauge", ratio: gauge, reason: "gauge-only" };
  return { ...nothing, state: "unknown", reason: whyUnknown(state, server, basis) };
}

function whyUnknown(state, server, basis) {
  if (server === null) return "no-server";
  if (basis === "counter") {
    if (notExported(server, "query_tokens") || notExported(server, "hit_tokens")) return "not-exported";
    return server.metrics_state === "failed" ? "metrics-failed" : "no-counters";
  }
  if (basis === "usage") return server.usage_details === false ? "no-usage" : "no-answer";
  return heardBlocks(state, server) ? "no-answer" : "no-events";
}

const heardBlocks = (state, server) =>
  coverageOf(server) !== "none" || cachesOf(state, server.id).some((cache) => cache.blocks.size > 0);

/** The newest reading of a server's metrics; null before the first. */
export const latest = (state, server) => (server === null ? null : (state.metrics[server.id]?.at(-1) ?? null));

/**
 * Each engine behind a server by its label, where there is more than one: {engine, hit, query, ratio, running, waiting,
 * held}. Rates of several engines are pooled before dividing, never averaged.
 */
export function engineRows(state) {
  const engines = Object.entries(state.engines[state.serverOrder[0]] ?? {});
  if (engines.length < 2) return [];
  return engines.map(([engine, { hit_tokens: hit, query_tokens: query, running, waiting, kv_usage_ratio: held }]) => ({
    engine, hit, query, ratio: hit !== null && query > 0 ? hit / query : null, running, waiting, held,
  }));
}

/** Whether this server's /metrics lacks that field of a reading: "not exported by this server", which isn't 0. */
export const notExported = (server, field) => (server?.not_exported ?? []).includes(field);

/**
 * Readings that disagree by more than a block a request: {key, window, first, second, hit, query, requests, causes,
 * text}. `causes` holds all known ones that fit, and may be empty; `text` is the dashboard's own English.
 */
export function differences(state) {
  const server = primaryServer(state);
  return (server === null ? [] : (state.differences[server.id] ?? [])).map((difference) => {
    const { window, first, second, hit_tokens: hit, query_tokens: query, requests, cause, text } = difference;
    const causes = difference.causes?.length > 0 ? difference.causes : [cause].filter((known) => known !== null);
    return { key: `${window} ${first} ${second}`, window, first, second, hit, query, requests, causes, text };
  });
}

/** "agree", "differ", or null where fewer than two readings of any window have figures. */
export function agreement(state) {
  if (differences(state).length > 0) return "differ";
  const compared = hitRateTable(state).some(({ cells }) => cells.filter((one) => one.state === "value").length > 1);
  return compared ? "agree" : null;
}
