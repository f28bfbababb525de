/** What the info buttons say: each topic's name, what it is, over which window, from which source, by which formula. */

export default {
  "info.about": "About: {name}",
  "info.window": "Window",
  "info.source": "Source",
  "info.formula": "Formula",

  "info.hit-rate.name": "Hit rate",
  "info.hit-rate.what":
    "The share of prompt tokens that the server found in its prefix cache when it looked requests up. Counted in tokens, not in requests.",
  "info.hit-rate.window": "Since the server started. Restarting it starts anew.",
  "info.hit-rate.source": "The server's own counters, read from its metrics page: vllm:prefix_cache_hits and vllm:prefix_cache_queries.",
  "info.hit-rate.formula": "hit tokens ÷ looked-up tokens",

  "info.ttft.name": "First token, warm and cold",
  "info.ttft.what":
    "The time from sending a request to the first piece of its answer. Warm: half or more of the blocks that could be reused were. Cold: fewer.",
  "info.ttft.window": "The finished requests that this page keeps.",
  "info.ttft.source": "Our clock, at the proxy, for streamed answers. With the embedded engine the time itself is modelled.",
  "info.ttft.formula": "median of the first-token times of each group",

  "info.reused.name": "Prompt tokens reused",
  "info.reused.what": "Prompt tokens whose keys and values came from the cache, so that the server didn't compute them again.",
  "info.reused.window": "Since the server started.",
  "info.reused.source": "The server's counters. Computed is what was looked up and not found.",
  "info.reused.formula": "computed = looked-up tokens − hit tokens",

  "info.pool.name": "The pool's blocks",
  "info.pool.what":
    "How the KV cache's blocks are used now: held by running requests, cached and free to be reused or taken, or holding nothing that could be reused.",
  "info.pool.window": "Now.",
  "info.pool.source":
    "KV events, mirrored here block by block; the size from the server's configuration. Running is inferred from the block tables of requests that pass here.",
  "info.pool.formula": "rest = pool size − 1 (the null block) − cached blocks, copies counted",

  "info.lanes.name": "Blocks reused, of all",
  "info.lanes.what":
    "How many of a prompt's blocks were found in the cache. The total counts the partial tail, which is never cached, so that a prompt sent twice reuses all but its last block.",
  "info.lanes.window": "One request.",
  "info.lanes.source": "The response's usage where the server gives it, else inferred from KV events. The cells follow the server's reuse report and its stored blocks.",
  "info.lanes.formula": "reused blocks = cached tokens ÷ block size; at most ⌊(prompt tokens − 1) ÷ block size⌋",

  "info.lane-time.name": "First token of a request",
  "info.lane-time.what": "The time until the first piece of this answer. For an answer that wasn't streamed, the server's own time where it gives one.",
  "info.lane-time.window": "One request.",
  "info.lane-time.source": "Our clock at the proxy; for answers that weren't streamed the server's clock (its flag --enable-per-request-metrics).",
  "info.lane-time.formula": "arrival of the first answer text − sending of the request",

  "info.tree.name": "The prefix tree",
  "info.tree.what":
    "Which beginnings of prompts are cached. A run of blocks without a branch is one bar; its height is the number of requests that share it, its length the number of blocks.",
  "info.tree.window": "Now; evicted runs fade out.",
  "info.tree.source": "KV events: each block names its parent. Requests are matched to blocks by their block tables.",
  "info.tree.formula": "requests that share a run = distinct requests whose block table holds its blocks",

  "info.cache.name": "Cells of the cache picture",
  "info.cache.what": "Each cell is a block that the server holds. The numbers in the legend count blocks, copies of the same content included.",
  "info.cache.window": "Now.",
  "info.cache.source":
    "KV events. They carry no physical block numbers, so a cell's place says which chain it belongs to, not where it lies in GPU memory.",
  "info.cache.formula": "running + free (shared by 4+, by 2–3, by one) + rest = pool size − 1",

  "info.chart-ttft.name": "First-token times",
  "info.chart-ttft.what":
    "Each mark is a request. By request: in the order in which they were sent. By computed tokens: against the prompt tokens that weren't cached, which is what takes the time.",
  "info.chart-ttft.window": "The last 200 finished requests that this page keeps.",
  "info.chart-ttft.source": "Our clock for the time; the response's usage for the tokens.",
  "info.chart-ttft.formula": "computed tokens = prompt tokens − cached tokens",

  "info.chart-rate.name": "Hit rate over time",
  "info.chart-rate.what": "The hit rate of the minute before each moment. Where no prompt was looked up in that minute there is a gap, not a zero.",
  "info.chart-rate.window": "A minute for each point, the last 15 minutes in all.",
  "info.chart-rate.source": "The server's counters, as often as its metrics page is read.",
  "info.chart-rate.formula": "hit tokens of the minute ÷ looked-up tokens of the minute",

  "info.chart-tokens.name": "Prompt tokens by request",
  "info.chart-tokens.what": "Each bar is a prompt: the part that was reused and the part that was computed.",
  "info.chart-tokens.window": "The last 40 requests that this page keeps.",
  "info.chart-tokens.source": "The response's usage, or KV events where the server leaves it out.",
  "info.chart-tokens.formula": "computed = prompt tokens − cached tokens",
};
