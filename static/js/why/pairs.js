/** Two requests that should have shared: which earlier one a request is held against, and how both are measured. Pure. */

/** So many answer tokens are enough to see when the first one comes. */
export const MEASURED_TOKENS = 4;
const MAX_COMPARED = 50_000;
/** An alike text shares so much of itself with the other, counted from both ends. */
const ALIKE = 0.3;
const CONTEXT = 40;

/** All words of a chat request that a client writes, in the order in which templates write them. */
export function wordsOf({ tools, messages = [], prompt }) {
  const texts = messages.map(({ role, content }) => `${role}\n${typeof content === "string" ? content : JSON.stringify(content ?? "")}`);
  return [tools ? JSON.stringify(tools) : "", ...texts, typeof prompt === "string" ? prompt : ""].join("\n").slice(0, MAX_COMPARED);
}

/** Of `entries` ([id, {body}], newest first) the one most like `body`, though not the same; null where none is. */
export function likest(entries, body) {
  const words = wordsOf(body);
  let best = null;
  let most = ALIKE;
  for (const entry of entries) {
    const other = wordsOf(entry[1].body);
    if (other === words) continue;
    const alike = likeness(words, other);
    if (alike > most) [best, most] = [entry, alike];
  }
  return best;
}

/** How much of the longer text is the same from the front or from the end, 0 to 1. */
function likeness(a, b) {
  const shorter = Math.min(a.length, b.length);
  let front = 0;
  while (front < shorter && a[front] === b[front]) front += 1;
  let end = 0;
  while (end < shorter - front && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  return (front + end) / Math.max(a.length, b.length, 1);
}

/** Whether a request lost something that it could have reused. */
export function lost({ outcome, reused_blocks: reused, reusable_blocks: reusable }) {
  return outcome === "ok" && reused !== null && reusable !== null && reused < reusable;
}

/**
 * The four requests that measure a remedy, in order: both as they are, then both rewritten, as {name, body}. Each pair has
 * a salt of its own, so that what is cached from before helps neither.
 */
export function measured({ before, after, finding, model, salt }) {
  const rewritten = [finding.before_remedy?.request ?? before, finding.after_remedy?.request ?? after];
  return [[before, after], rewritten].flatMap((pair, i) => {
    const own = salt();
    const when = i === 0 ? "as-is" : "rewritten";
    return pair.map((body, j) => ({ name: `${when}-${j === 0 ? "first" : "second"}`, body: measurable(body, own, model) }));
  });
}

function measurable(body, salt, model) {
  const { n: _, stop: __, response_format: ___, max_completion_tokens: ____, ...kept } = body;
  return {
    ...kept,
    model: body.model ?? model,
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
    vllm_xargs: { ...kept.vllm_xargs, kv_cache_report_mode: "full" },
    temperature: 0,
    max_tokens: MEASURED_TOKENS,
    cache_salt: salt,
  };
}

/**
 * Where the two differ, as {lead, text, tail} of one request: the span, with some of the text around it where that is at
 * hand. Spans count code points.
 */
export function excerpt(body, { place, index }, { start, end, text }) {
  const content = place === "message" ? body.messages?.[index]?.content : place === "prompt" ? body.prompt : null;
  if (typeof content !== "string") return { lead: "", text, tail: "" };
  const points = Array.from(content);
  if (points.slice(start, end).join("") !== text) return { lead: "", text, tail: "" };
  const lead = points.slice(Math.max(0, start - CONTEXT), start).join("");
  const tail = points.slice(end, end + CONTEXT).join("");
  return { lead: start > CONTEXT ? `…${lead}` : lead, text, tail: end + CONTEXT < points.length ? `${tail}…` : tail };
}

/** A unified diff as rows {kind, text}: added, removed, same, part (whose text follows), gap (lines left out). */
export function diffRows(lines) {
  const rows = [];
  // Two lines of names stand in front; further ones that look like it are text.
  for (const line of lines.slice(2)) {
    if (line.startsWith("@@")) {
      if (rows.length > 0) rows.push({ kind: "gap", text: "⋯" });
      continue;
    }
    const kind = { "+": "added", "-": "removed" }[line[0]] ?? "same";
    const text = line.slice(1);
    rows.push(kind === "same" && /^\[\w+\]$/.test(text) ? { kind: "part", text: text.slice(1, -1) } : { kind, text });
  }
  return rows;
}
