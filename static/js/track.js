/** What the timeline's strip draws: requests, tokens looked up and reused, and evictions, by stretches of a few seconds. */

export const BUCKET_MS = 5_000;
const NOTHING = { requests: 0, hit: 0, query: 0, evicted: 0, cleared: 0 };

export function createTrack({ window_ms }) {
  const buckets = new Map();
  let newest = -Infinity;

  function add(at_ms, fields) {
    const key = Math.floor(at_ms / BUCKET_MS);
    const bucket = buckets.get(key) ?? { at_ms: key * BUCKET_MS, ...NOTHING };
    for (const [name, value] of Object.entries(fields)) bucket[name] += value;
    buckets.set(key, bucket);
    if (key <= newest) return;
    newest = key;
    for (const old of buckets.keys()) if (old < newest - Math.ceil(window_ms / BUCKET_MS)) buckets.delete(old);
  }

  return {
    /** Takes up an event. A finished request counts with its tokens where the server told both numbers. */
    record({ type, at_ms, data }) {
      if (type === "request.started") add(at_ms, { requests: 1 });
      else if (type === "request.finished") {
        const { prompt_tokens: query, cached_tokens: hit } = data.record;
        if (typeof query === "number" && typeof hit === "number") add(at_ms, { hit, query });
      } else if (type === "blocks.removed") add(at_ms, { evicted: data.copies.filter((copies) => copies === 0).length });
      else if (type === "blocks.cleared") add(at_ms, { cleared: 1 });
    },
    /** {at_ms, requests, hit, query, evicted, cleared} of each stretch in which something was, in no order. */
    buckets: () => [...buckets.values()],
  };
}
