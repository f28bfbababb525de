/**
 * Figures and rows that views show, computed from the state. Pure; null where something isn't known, with a reason.
 * A figure is {value, ...parts, reason}: `reason` is why `value` is null, as a code that the catalogues word.
 */

/** Keeps the last answer of `compute` for as long as the inputs that `keys` picks stay the same objects. */
export function remember(keys, compute) {
  let lastKeys = null;
  let last;
  return (...args) => {
    const current = keys(...args);
    if (lastKeys === null || current.some((key, i) => key !== lastKeys[i])) {
      last = compute(...args);
      lastKeys = current;
    }
    return last;
  };
}

export function primaryServer(state) {
  return state.servers[state.serverOrder[0]] ?? null;
}

/** The caches of `server`, a rank after the other. */
export function cachesOf(state, server) {
  return Object.values(state.caches)
    .filter((cache) => cache.server === server)
    .sort((a, b) => a.rank - b.rank);
}

/** Hash to entry of all blocks of the first server; with more than one rank entries say theirs, and a hash stands once. */
export const residentBlocks = remember(
  (state) => [state.caches, state.serverOrder[0]],
  (state) => {
    const caches = state.serverOrder.length === 0 ? [] : cachesOf(state, state.serverOrder[0]);
    if (caches.length === 1) return caches[0].blocks;
    const all = new Map();
    for (const cache of caches) for (const block of cache.blocks.values()) all.set(block.hash, { ...block, rank: cache.rank });
    return all;
  },
);

/** The share of a prompt's reusable blocks that was reused; null where nothing could be, or it isn't known. */
export function reusedRatio(record) {
  const { reused_blocks: reused, reusable_blocks: reusable } = record;
  return typeof reused === "number" && reusable > 0 ? reused / reusable : null;
}

/** "warm": half or more of what could be reused was; "cold": less; null: not known, or nothing could be. */
export function warmth(record) {
  const ratio = reusedRatio(record);
  if (ratio === null) return null;
  return ratio >= 0.5 ? "warm" : "cold";
}

export const isRunning = (record) => record.outcome === null;

/** Kept requests, newest first, as {record, table}. */
export const requestRows = remember(
  (state) => [state.requestOrder, state.requests],
  (state) => state.requestOrder.map((id) => state.requests[id]),
);

/** Hash to the ids of kept requests whose block table holds it, newest first. */
export const holdersByHash = remember(
  (state) => [state.requestOrder, state.requests],
  (state) => {
    const holders = new Map();
    for (const { record, table } of requestRows(state)) {
      for (const hash of new Set(table?.hash ?? [])) {
        if (hash === null) continue;
        const ids = holders.get(hash);
        if (ids) ids.push(record.id);
        else holders.set(hash, [record.id]);
      }
    }
    return holders;
  },
);

/** Hashes that running requests hold. */
export const runningHashes = remember(
  (state) => [state.requestOrder, state.requests],
  (state) => {
    const running = new Set();
    for (const { record, table } of requestRows(state)) {
      if (!isRunning(record)) continue;
      for (const hash of table?.hash ?? []) if (hash !== null) running.add(hash);
    }
    return running;
  },
);

export function rate(state, server, window, basis) {
  return (state.rates[server] ?? []).find((reading) => reading.window === window && reading.basis === basis) ?? null;
}

function countersReason(server) {
  if (server === null) return "no-server";
  if (server.not_exported?.includes("query_tokens")) return "not-exported";
  if (server.metrics_state === "failed") return "metrics-failed";
  return "no-counters";
}

/** {value, hit, query, reason}: the server's own counters over its lifetime. */
export function lifetimeHitRate(state) {
  const server = primaryServer(state);
  const reading = server && rate(state, server.id, "lifetime", "counter");
  if (!reading) return { value: null, hit: null, query: null, reason: countersReason(server) };
  const { hit_tokens: hit, query_tokens: query } = reading;
  // From the very parts that stand under it, so that number and label can't part.
  const value = query > 0 ? hit / query : null;
  return { value, hit, query, reason: value === null ? "no-lookup" : null };
}

export function median(values) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** {warm: {value, n}, cold: {value, n}}: medians of the first-token time over kept requests that ended well. */
export const firstToken = remember(
  (state) => [state.requestOrder, state.requests],
  (state) => {
    const times = { warm: [], cold: [] };
    for (const { record } of requestRows(state)) {
      const group = warmth(record);
      if (record.outcome === "ok" && group !== null && record.ttft_ms !== null) times[group].push(record.ttft_ms);
    }
    const figure = (values) => ({ value: median(values), n: values.length });
    return { warm: figure(times.warm), cold: figure(times.cold) };
  },
);

/**
 * The pool in parts, in blocks: {total, resident, running, free, rest, evicted, reason}.
 * `total` leaves the null block out; `running` are resident blocks that running requests hold; `free` are cached and
 * free; `rest` holds nothing that could be reused. `evicted`: whether any block ever left, so that `rest` isn't "never
 * written".
 */
export function pool(state) {
  const server = primaryServer(state);
  const unknown = { total: null, resident: null, running: null, free: null, rest: null, evicted: false };
  if (server === null) return { ...unknown, reason: "no-server" };
  const streams = server.streams ?? [];
  const total = server.num_gpu_blocks === null ? null : server.num_gpu_blocks - 1;
  const heard = streams.some((stream) => stream.coverage !== "none" || stream.batches > 0);
  if (!heard && cachesOf(state, server.id).every((cache) => cache.blocks.size === 0)) {
    return { ...unknown, total, reason: "no-events" };
  }
  const held = runningHashes(state);
  let resident = 0;
  let running = 0;
  for (const cache of cachesOf(state, server.id)) {
    for (const block of cache.blocks.values()) {
      resident += block.copies;
      if (held.has(block.hash)) running += 1;
    }
  }
  const evicted = streams.some((stream) => stream.blocks_removed > 0);
  const rest = total === null ? null : Math.max(0, total - resident);
  return { total, resident, running, free: resident - running, rest, evicted, reason: null };
}

/** How many requests hold a block, those that the page no longer keeps included. */
export function sharedBy(block, holders) {
  return block.otherRequests + (holders.get(block.hash)?.length ?? 0);
}

/** What a cell of the cache picture shows. */
export const CELL = { empty: 0, single: 1, few: 2, many: 3, running: 4 };

export function cellState(block, holders, running) {
  return shareState(sharedBy(block, holders), running.has(block.hash));
}

export function shareState(shared, isRunning) {
  if (isRunning) return CELL.running;
  if (shared >= 4) return CELL.many;
  return shared >= 2 ? CELL.few : CELL.single;
}

/** How many of the pool's blocks are in each state, by CELL: a hash's copies are blocks of their own, of which one may run. */
export function cellTally(blocks, holders, running) {
  const tally = [0, 0, 0, 0, 0];
  for (const block of blocks.values()) {
    const runs = running.has(block.hash) ? 1 : 0;
    tally[CELL.running] += runs;
    tally[shareState(sharedBy(block, holders), false)] += block.copies - runs;
  }
  return tally;
}

/** The first-token time to show for a request, {ms, ofServer}: ours, or the server's own where ours saw no stream. */
export function firstTokenTime({ ttft_ms, engine_ttft_ms }) {
  return ttft_ms === null ? { ms: engine_ttft_ms ?? null, ofServer: typeof engine_ttft_ms === "number" } : { ms: ttft_ms, ofServer: false };
}

/** Points of the first-token chart, oldest first: {id, name, label, ttft_ms, group}. */
export function ttftSeries(state, limit = 60) {
  const points = [];
  for (const { record } of requestRows(state)) {
    if (record.ttft_ms === null || record.outcome === null) continue;
    points.push({ id: record.id, label: record.label, ttft_ms: record.ttft_ms, group: warmth(record) });
    if (points.length === limit) break;
  }
  return points.reverse();
}

/** Points of first-token time against what had to be computed, newest first: {id, label, computed, ttft_ms, group, ratio}. */
export function computedSeries(state, limit = 200) {
  const points = [];
  for (const { record } of requestRows(state)) {
    const { prompt_tokens: prompt, cached_tokens: cached, ttft_ms } = record;
    if (record.outcome === null || ttft_ms === null || prompt === null || cached === null || cached > prompt) continue;
    points.push({ id: record.id, label: record.label, computed: prompt - cached, ttft_ms, group: warmth(record), ratio: reusedRatio(record) });
    if (points.length === limit) break;
  }
  return points;
}

/** Bars of the token chart, oldest first: {id, label, reused, computed, unknown}, in prompt tokens. */
export function tokenSeries(state, limit = 40) {
  const bars = [];
  for (const { record } of requestRows(state)) {
    const { prompt_tokens: prompt, cached_tokens: cached } = record;
    if (prompt === null) continue;
    const known = cached !== null;
    bars.push({
      id: record.id,
      label: record.label,
      reused: known ? cached : null,
      computed: known ? prompt - cached : null,
      unknown: known ? null : prompt,
    });
    if (bars.length === limit) break;
  }
  return bars.reverse();
}

export const HIT_RATE_WINDOW_MS = 60_000;

/**
 * Points {at_ms, hit, query, ratio}: at each scrape, hits over lookups of the minute before it, from the counters.
 * `ratio` is null where nothing was looked up in that minute. A counter that went back starts anew.
 */
export const hitRateSeries = remember(
  (state, server) => [state.metrics[server]],
  (state, server) => {
    const series = [];
    let oldest = 0;
    const points = (state.metrics[server] ?? []).filter((p) => p.query_tokens !== null && p.hit_tokens !== null);
    points.forEach((point, i) => {
      if (i > 0 && point.query_tokens < points[i - 1].query_tokens) oldest = i;
      while (points[oldest].at_ms < point.at_ms - HIT_RATE_WINDOW_MS) oldest += 1;
      const queries = point.query_tokens - points[oldest].query_tokens;
      const hits = point.hit_tokens - points[oldest].hit_tokens;
      series.push({ at_ms: point.at_ms, hit: hits, query: queries, ratio: queries > 0 ? hits / queries : null });
    });
    return series;
  },
);
