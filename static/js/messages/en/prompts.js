/** The prompt doctor. */

export default {
  "prompts.title": "Prompt doctor",
  "prompts.lead":
    "Would your prompts share? Paste several of them in the order in which they are sent, or drop a file of requests. It counts what could be reused, names what breaks it, and says what each fix would gain. Nothing is sent to the model.",
  "prompts.text": "Prompts, divided by lines of three dashes; or requests as JSON lines",
  "prompts.choose": "Choose a file, or drop it here",
  "prompts.try": "Take an example",
  "prompts.file": "{name}",
  "prompts.lines": "JSON lines",
  "prompts.count": { one: "{n} prompt: paste another one that should share with it", other: "{n} prompts" },
  "prompts.examine": "Examine",
  "prompts.cancel": "Cancel",
  "prompts.command": "The same on the command line, with an exit code for CI:",
  "prompts.sending": "Reading the requests …",
  "prompts.stage.tokenise": { one: "Tokens, by the server's own tokenizer: {done} of {n} request", other: "Tokens, by the server's own tokenizer: {done} of {n} requests" },
  "prompts.stage.count": { one: "Counting hits: {done} of {n} request", other: "Counting hits: {done} of {n} requests" },
  "prompts.stage.compare": { one: "Looking for what breaks them: {done} of {n} request", other: "Looking for what breaks them: {done} of {n} requests" },
  "prompts.stage.gains": { one: "Counting again with each fix: {done} of {n}", other: "Counting again with each fix: {done} of {n}" },
  "prompts.broken": "The report broke off. Try again.",
  "prompts.cancelled": "Cancelled.",
  "prompts.report": "Report",
  "prompts.now": { one: "Of {n} prompt token {hit} would be found cached: {ratio}.", other: "Of {n} prompt tokens {hit} would be found cached: {ratio}." },
  "prompts.fixed": { one: "With every fix: {n}, which is {ratio}.", other: "With every fix: {n}, which is {ratio}." },
  "prompts.not-fixed": "No mechanical fix gains more than that.",
  "prompts.clean": "Nothing known breaks their sharing.",
  "prompts.pool": {
    one: "{n} request, in a pool of {blocks} blocks of {size} tokens that begins empty. In a pool that never evicts: {endless} tokens.",
    other: "{n} requests one at a time, in a pool of {blocks} blocks of {size} tokens that begins empty. In a pool that never evicts: {endless} tokens.",
  },
  "prompts.assumed.block_size": "The server doesn't tell its block size: {value} tokens are assumed.",
  "prompts.assumed.num_gpu_blocks": "The server doesn't tell how many blocks it has: {value} are assumed.",
  "prompts.left-out": { one: "{n} request was left out: no tokens, or too long for the pool.", other: "{n} requests were left out: no tokens, or too long for the pool." },
  "prompts.breakers": "What breaks it, the costliest first",
  "prompts.lost": { one: "About {n} token lost, in {requests}.", other: "About {n} tokens lost, in {requests}." },
  "prompts.example": "Between prompts {one} and {other}:",
  "prompts.gained": { one: "Its fix alone gains {n} cached token.", other: "Its fix alone gains {n} cached tokens." },
  "prompts.unreadable": { one: "{n} line is no request. Line {line}: {reason}", other: "{n} lines are no requests. The first is line {line}: {reason}" },

  "info.prompts.name": "The prompt doctor",
  "info.prompts.what":
    "How much of a list of prompts could be reused if they were sent one after the other, what keeps them from sharing, and how much each fix would gain.",
  "info.prompts.window": "The prompts that you paste or drop, in that order, from an empty cache.",
  "info.prompts.source":
    "Tokens from this server's own tokenizer, its block size and its pool. Hits are counted by the engine's own rules for blocks, the free queue and eviction; breakers are recognised by pattern.",
  "info.prompts.formula": "hit tokens ÷ prompt tokens; a fix's gain is the same count with the requests rewritten",
};
