/**
 * The pool in three parts, what lies on other tiers, and what sharing saves. Pure.
 * "Held" is the engine's own gauge and counts blocks of running requests whether they are cached or not; "cached" is what
 * the mirror of KV events knows beyond them.
 */

import { pool, primaryServer } from "../selectors.js";
import { latest, notExported } from "./hit_rates.js";
import { coverageOf, groupsOf } from "./streams.js";

/**
 * {total, held, cached, unwritten, gauge, reasons, atLeast, evicted}, in blocks: parts are null where unknown, with the code
 * of why in `reasons`. `atLeast`: `cached` is a lower bound.
 */
export function poolParts(state) {
  const server = primaryServer(state);
  const point = latest(state, server);
  const mirror = pool(state);
  const total = point?.pool_blocks ?? mirror.total;
  const held = point?.held_blocks ?? null;
  const cached = point?.cached_blocks ?? null;
  const unwritten = point?.unwritten_blocks ?? null;
  return {
    total, held, cached, unwritten,
    gauge: point?.kv_usage_ratio ?? null,
    reasons: {
      held: held === null ? whyNoGauge(server) : null,
      cached: cached === null ? whyNoMirror(server, mirror) : null,
      unwritten: unwritten === null ? (held === null ? whyNoGauge(server) : whyNoMirror(server, mirror)) : null,
    },
    atLeast: cached !== null && coverageOf(server) !== "complete",
    evicted: mirror.evicted,
  };
}

function whyNoGauge(server) {
  if (server === null) return "no-server";
  if (notExported(server, "kv_usage_ratio")) return "not-exported";
  return server.metrics_state === "failed" ? "metrics-failed" : "no-metrics";
}

function whyNoMirror(server, mirror) {
  if (mirror.resident === null) return "no-events";
  return server !== null && server.num_gpu_blocks === null ? "no-pool-size" : "no-metrics";
}

/** Tiers but the GPU: [{medium, blocks}], the copies of all ranks and groups together. */
export function otherTiers(server) {
  const tiers = new Map();
  for (const { medium, copies } of groupsOf(server)) {
    if (medium !== "GPU") tiers.set(medium, (tiers.get(medium) ?? 0) + copies);
  }
  return [...tiers].map(([medium, blocks]) => ({ medium, blocks }));
}

/** {blocks, bytes, tokens, connectorTokens}: what sharing saves now, and what reuse saved so far; null where unknown. */
export function savings(state) {
  const server = primaryServer(state);
  return {
    blocks: server?.shared_blocks ?? null,
    bytes: server?.shared_bytes ?? null,
    tokens: server?.saved_tokens ?? null,
    connectorTokens: latest(state, server)?.external_hit_tokens ?? null,
  };
}
