/** The glossary: what each term means, in our own words. */

export default {
  "glossary.title": "Glossary",
  "glossary.close": "Close the glossary",
  "glossary.lead": "What the words on this page mean. vLLM's own names are kept.",

  "glossary.kv-cache.name": "KV cache",
  "glossary.kv-cache.text":
    "For each token the model computes a key and a value in every layer, and later tokens look back at them. The KV cache keeps these in GPU memory, so that they are computed once.",
  "glossary.block.name": "Block",
  "glossary.block.text":
    "The KV cache is handed out in blocks of a fixed number of tokens, often 16. A block is the smallest thing that can be reused: half a block can't.",
  "glossary.block-table.name": "Block table",
  "glossary.block-table.text":
    "A request's list of blocks, in the order of its tokens. Two requests that begin alike name the same blocks at the front of their tables. The tables here are logical: they name contents, not places in memory.",
  "glossary.hash-chain.name": "Block hash, hash chain",
  "glossary.hash-chain.text":
    "A block is found by a hash of its tokens together with the hash of the block before it. So a hash stands for the whole prompt up to there: change one token at the front, and every hash behind it changes.",
  "glossary.parent-hash.name": "Parent hash",
  "glossary.parent-hash.text": "The hash of the block before. It ties blocks into chains, and chains that begin alike into a tree.",
  "glossary.prefix-cache-hit.name": "Prefix cache hit",
  "glossary.prefix-cache-hit.text":
    "Before it computes a prompt, the server looks its blocks up from the front and stops at the first that isn't cached. All before that is a hit and is not computed again.",
  "glossary.cached-tokens.name": "Cached tokens",
  "glossary.cached-tokens.text":
    "How many tokens of a prompt came from the cache: the hit blocks times the block size. The server says it in each response's usage, if it is started with --enable-prompt-tokens-details.",
  "glossary.hit-rate.name": "Hit rate",
  "glossary.hit-rate.text":
    "Cached tokens divided by looked-up tokens over some window. Without its window and its source the number says little: over a lifetime it hides what happens now, averaged over replicas it hides the cold ones.",
  "glossary.partial-tail.name": "Partial tail",
  "glossary.partial-tail.text":
    "The last tokens of a prompt rarely fill a block. Only full blocks are cached, and the last token is always computed, so even a prompt sent twice computes its tail.",
  "glossary.divergence.name": "Divergence",
  "glossary.divergence.text":
    "The first token in which a prompt differs from the nearest cached one. From the block that holds it on, all is computed. Put what changes as far back as you can.",
  "glossary.prefill.name": "Prefill",
  "glossary.prefill.text":
    "The work on the prompt before the first token of the answer: all of its tokens that aren't cached, many at a time. This is what the prefix cache shortens.",
  "glossary.decode.name": "Decode",
  "glossary.decode.text":
    "The work on the answer, a token for each request and step. The prefix cache doesn't shorten it; its tokens fill blocks too, and a next turn can reuse them.",
  "glossary.ttft.name": "TTFT, time to first token",
  "glossary.ttft.text":
    "From sending the request to the first piece of the answer: waiting in the queue, prefill, one step. The time to the whole answer is another number, mostly decode.",
  "glossary.itl.name": "ITL, inter-token latency",
  "glossary.itl.text": "The time between one token of an answer and the next. Long prefills of other requests can stretch it.",
  "glossary.warm-cold.name": "Warm, cold",
  "glossary.warm-cold.text":
    "Here a request is warm if at least half of the blocks that it could have reused were, else cold. A cold start is asked for with a salt of its own.",
  "glossary.pool.name": "Block pool",
  "glossary.pool.text":
    "All blocks that the server has, reserved at its start. At any time some are held by running requests, some are cached and free, and some hold nothing.",
  "glossary.free-queue.name": "Free queue",
  "glossary.free-queue.text":
    "Blocks that no running request holds stand in a queue, still with their contents. A hit takes a block out of it; who needs an empty block takes the one at its head. A finished request gives its blocks back last one first, so that the ends of chains go before their heads.",
  "glossary.eviction.name": "Eviction",
  "glossary.eviction.text":
    "When a free block is taken for something new, its old content is gone from the cache: it is evicted. The blocks unused for longest go first. A pool that is too small forgets a prefix before it comes again.",
  "glossary.preemption.name": "Preemption",
  "glossary.preemption.text":
    "When running requests need more blocks than there are, the server stops one, frees its blocks and computes it again later. What is still cached then is a hit.",
  "glossary.salt.name": "Cache salt",
  "glossary.salt.text":
    "A word that a request may carry (cache_salt). It enters the hash of its first block, so that only requests with the same salt share blocks. It keeps tenants apart, and gives this page its cold starts.",
  "glossary.prefix-tree.name": "Prefix tree",
  "glossary.prefix-tree.text":
    "Cached chains that begin alike, drawn as one trunk with branches. A system prompt is a thick trunk, the questions under it are thin leaves.",
  "glossary.kv-cache-group.name": "KV cache group",
  "glossary.kv-cache-group.text":
    "Layers that keep the same spans share a group. Models that mix full attention with sliding windows or state-space layers have several, each with blocks and hits of its own.",
  "glossary.kv-events.name": "KV events",
  "glossary.kv-events.text":
    "What the server publishes when blocks are stored, removed or all cleared (--kv-events-config). They say which content is cached, not where it lies or who holds it. They carry the prompts' token ids, so the port is as private as the prompts.",
  "glossary.mirror.name": "Mirror",
  "glossary.mirror.text":
    "The dashboard's own copy of what is cached, built from KV events. If events are missed it replays them, and calls its picture partial until it is whole again.",
  "glossary.counters.name": "Counters",
  "glossary.counters.text":
    "Totals that the server keeps and shows on its metrics page. They cover all its traffic, also what doesn't pass through this dashboard, and say nothing of single requests.",
  "glossary.usage.name": "Usage",
  "glossary.usage.text": "The part of a response that counts its tokens: prompt, completion, and of the prompt the cached ones. Exact for one request, and without times.",
  "glossary.basis.name": "Basis",
  "glossary.basis.text":
    "Where a claim comes from: the server itself, its counters, a response's usage, the dashboard's clock, inferred from hashes, or modelled. Different sources are never mixed into one number; where they disagree, the page says so.",
};
