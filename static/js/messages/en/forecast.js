/** The ruler and the forecast of a prompt before it is sent, and what became of it. */

export default {
  "forecast.title": "Before it is sent",
  "forecast.strip": { one: "The prompt's one block", other: "The prompt's {n} blocks" },
  "forecast.system": "system prompt",
  "forecast.question": "question",
  "forecast.asking": "Counting its tokens …",
  "forecast.too-long": "Not forecast while you type: longer than {n} characters. It can be sent all the same.",
  "forecast.reuse": {
    one: "{reused} of {blocks} blocks are cached and would be reused{several}: {cached} of {n} token.",
    other: "{reused} of {blocks} blocks are cached and would be reused{several}: {cached} of {n} tokens.",
  },
  "forecast.none": { one: "Nothing of it can be reused: its {n} token, in {blocks} block, would be computed.", other: "Nothing of it can be reused: all {n} tokens, in {blocks} blocks, would be computed." },
  "forecast.rank": " on rank {rank}",
  "forecast.no-events": { one: "{n} token in {blocks} block.", other: "{n} tokens in {blocks} blocks. Which of them are cached isn't known without KV events." },
  "forecast.time": "First token after about {about} ({early} to {late} for 8 of 10).",
  "forecast.no-time": "No time yet: this server has answered too few requests to learn it from.",
  "forecast.tail": {
    one: "The last token fills no block, so it is always computed.",
    other: "The last {n} tokens fill no block, so they are always computed.",
  },
  "forecast.no-tail": "It fills its last block of {size} exactly; that one is computed anew all the same, for the last token.",
  "forecast.kind.reused": { one: "{n} block: cached, would be reused", other: "{n} blocks: cached, would be reused" },
  "forecast.kind.resident": { one: "{n} block: cached, but behind the first that isn't", other: "{n} blocks: cached, but behind the first that isn't" },
  "forecast.kind.computed": { one: "{n} block: would be computed", other: "{n} blocks: would be computed" },
  "forecast.kind.unknown": { one: "{n} block: not known whether it is cached", other: "{n} blocks: not known whether they are cached" },
  "forecast.kind.tail": "The last block isn't full: never cached",

  "info.forecast.name": "The forecast while typing",
  "info.forecast.what":
    "What the prompt in the form would meet if it were sent now. Solid blue blocks are cached and would be reused, hatched orange ones would be computed, and an outline is the tail that fills no block. The same colours stand behind the words of the system prompt.",
  "info.forecast.window": "Now. Asked again a quarter of a second after the last key press, and when blocks come or go.",
  "info.forecast.source":
    "Tokens from the server's own tokenizer with its chat template; cached blocks from the mirror of KV events; the time from a line through this server's unqueued requests.",
  "info.forecast.formula": "cached tokens = the full blocks that are cached from the first on, at most ⌊(prompt tokens − 1) ÷ block size⌋ blocks",
};
