/**
 * One request as the engine decided it, block by block, put together from what the server told: its block table and its
 * record. vLLM's own order: cut, hash, look up from the front until the first miss, touch what was found, place and
 * register the rest, compute. Pure.
 */

/** Of a longer run of like blocks, so many are shown one by one before the rest is one step, and one behind it. */
const SINGLY = 3;
const SKIPPED = ["lookup_skipped", "cache_off"];

/** The request's blocks and counts: what the steps are about; null where the server hasn't told enough. */
export function anatomyOf({ record, table }) {
  if (!table || record.prompt_tokens === null || !table.block_size) return null;
  const size = table.block_size;
  const blocks = table.state.map((state, i) => ({ state, hash: table.hash[i], tokens: table.tokens[i] }));
  const prompt = blocks.filter(({ state }) => state !== "decode");
  if (prompt.length === 0) return null;
  const full = prompt.filter(({ state }) => state !== "partial").length;
  const left = record.prompt_tokens - full * size;
  // KV events tell of full blocks alone; what is left over follows from the prompt's length.
  if (prompt.length === full && left > 0 && left < size) prompt.push({ state: "partial", hash: null, tokens: left });
  const reused = prompt.filter(({ state }) => state === "reused").length;
  return {
    blocks: prompt,
    answer: blocks.filter(({ state }) => state === "decode").length,
    size,
    full,
    tail: prompt.length > full ? prompt.at(-1).tokens : 0,
    /** At most so many can be reused, since the last token is always computed. */
    reusable: Math.min(full, Math.floor((record.prompt_tokens - 1) / size)),
    reused,
    skipped: SKIPPED.includes(record.verdict?.code),
  };
}

/**
 * Steps {phase, from, to}: `from` to `to` (exclusive) are the blocks that a step is about, null: all or none. Phases:
 * cut, hash, hit, miss, cap (not looked up, because of the last token), skip (nothing is looked up), touch, place (with
 * its hash registered), tail, compute, answer. Empty where too little is known.
 */
export function stepsOf(request) {
  const anatomy = anatomyOf(request);
  if (anatomy === null) return [];
  const { full, reused, reusable, skipped, tail, blocks } = anatomy;
  const steps = [{ phase: "cut", from: null, to: null }, ...spread("hash", 0, full)];
  if (skipped) steps.push({ phase: "skip", from: null, to: null });
  else {
    steps.push(...spread("hit", 0, reused));
    if (reused < reusable) steps.push({ phase: "miss", from: reused, to: reused + 1 });
    else if (reusable < full) steps.push({ phase: "cap", from: reusable, to: full });
  }
  steps.push(...spread("touch", 0, reused), ...spread("place", reused, full));
  if (tail > 0) steps.push({ phase: "tail", from: full, to: full + 1 });
  steps.push(...spread("compute", reused, blocks.length));
  return [...steps, { phase: "answer", from: null, to: null }];
}

function spread(phase, from, to) {
  const steps = [];
  const folded = to - from > 2 * SINGLY;
  for (let at = from; at < to; at++) {
    if (folded && at === from + SINGLY) {
      steps.push({ phase, from: at, to: to - 1 });
      at = to - 1;
    }
    steps.push({ phase, from: at, to: at + 1 });
  }
  return steps;
}

/** How far a block has come by step `at`: the phase of the last step up to it that was about the block, or null. */
export function phaseOf(steps, at, block) {
  for (let i = at; i >= 0; i--) {
    const { phase, from, to } = steps[i];
    if (from !== null && from <= block && block < to) return phase;
  }
  return null;
}

/** The prompt's blocks as cells, long runs of like ones as one: {from, to}. All steps begin and end at their edges. */
export function cellsOf(steps) {
  const edges = new Set();
  for (const { from, to } of steps) if (from !== null) edges.add(from).add(to);
  const sorted = [...edges].sort((a, b) => a - b);
  return sorted.slice(1).map((to, i) => ({ from: sorted[i], to }));
}

/** Tokens computed once the steps up to `at` are done, of all that are: {done, all}. */
export function computedBy(request, steps, at) {
  const { blocks, reused } = anatomyOf(request);
  const sum = (some) => some.reduce((total, { tokens }) => total + tokens, 0);
  const done = steps.slice(0, at + 1).filter(({ phase }) => phase === "compute").flatMap(({ from, to }) => blocks.slice(from, to));
  return { done: sum(done), all: sum(blocks.slice(reused)) };
}
