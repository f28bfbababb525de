/**
 * What the forecast of a prompt that isn't sent yet says, as rows that views draw. Pure.
 * A forecast is the answer of POST api/forecast; `size` is the server's block size in tokens.
 */

/** Longer texts aren't asked about while they are typed; in longer ones than the second the block borders aren't drawn. */
export const MAX_CHARS = 200_000;
export const MAX_MARKED_CHARS = 20_000;

/** What a forecast of a chat request depends on; every fresh salt is like another. */
export const bodyKey = ({ model, messages, tools = null, cache_salt: salt = null }) => JSON.stringify([model, messages, tools, salt !== null]);

/** Which rank the forecast speaks of: the one with most of it cached. */
export function rankOf(forecast) {
  return forecast.ranks.reduce((best, rank) => (best === null || rank.cached_tokens > best.cached_tokens ? rank : best), null);
}

/** What becomes of block `index`: reused, resident (cached, but out of reach), computed, tail, or unknown. */
export function blockKind(forecast, index) {
  const { block_size: size, tokens, cached_tokens: cached } = forecast;
  if ((index + 1) * size > tokens) return "tail";
  if (cached === null) return "unknown";
  if ((index + 1) * size <= cached) return "reused";
  return rankOf(forecast)?.resident[index] ? "resident" : "computed";
}

/** Runs of blocks that share their fate, in order: {kind, first, blocks, tokens}. */
export function runsOf(forecast) {
  const { block_size: size, tokens, blocks } = forecast;
  const runs = [];
  for (let index = 0; index < (blocks ?? 0); index++) {
    const kind = blockKind(forecast, index);
    const held = Math.min(size, tokens - index * size);
    const last = runs.at(-1);
    if (last?.kind === kind) {
      last.blocks += 1;
      last.tokens += held;
    } else runs.push({ kind, first: index, blocks: 1, tokens: held });
  }
  return runs;
}

/** The messages along the prompt, as shares of its tokens: {index, role, start, end}. */
export function messageSpans(forecast) {
  return (forecast.messages ?? []).map(({ index, role, start_token: start, tokens }) => ({
    index,
    role,
    start: start / forecast.tokens,
    end: (start + tokens) / forecast.tokens,
  }));
}

/**
 * `text` of message `index` cut at the block borders in it: {block, kind, text} in order, or null where they aren't known.
 * Block numbers count from 0, over the whole prompt.
 */
export function markedText(forecast, index, text) {
  const ruler = forecast.messages?.find((message) => message.index === index);
  if (!ruler || !forecast.block_size || text.length > MAX_MARKED_CHARS) return null;
  const parts = [];
  let from = 0;
  let block = Math.floor(ruler.start_token / forecast.block_size);
  for (const [ending, offset] of ruler.boundaries) {
    parts.push({ block: ending, kind: blockKind(forecast, ending), text: text.slice(from, offset) });
    from = offset;
    block = ending + 1;
  }
  if (from < text.length) parts.push({ block, kind: blockKind(forecast, block), text: text.slice(from) });
  return parts;
}

/**
 * A forecast beside what came: {said, came, right, early_ms, late_ms, ttft_ms, within}; null while either isn't known.
 * `within`: whether the first token came in the interval; null where none was given or the time isn't known.
 */
export function gradeOf(forecast, record) {
  const came = record?.cached_tokens ?? null;
  const said = forecast?.cached_tokens ?? record?.predicted_cached_tokens ?? null;
  if (came === null || said === null || record.outcome !== "ok") return null;
  const lower = forecast === null && record.predicted_is_lower_bound === true;
  const time = forecast?.ttft ?? null;
  const ttft = record.ttft_ms;
  const within = time === null || ttft === null ? null : ttft >= time.early_ms && ttft <= time.late_ms;
  return {
    said,
    came,
    lower,
    right: lower ? came >= said : came === said,
    about_ms: time?.about_ms ?? null,
    early_ms: time?.early_ms ?? null,
    late_ms: time?.late_ms ?? null,
    ttft_ms: ttft,
    within,
  };
}
