/**
 * The glossary's terms in reading order: {id, topics, drawing}. Words are the catalogues' `glossary.ID.{name,text}`.
 * `topics`: the info buttons that lead to it. `drawing`: shapes on a field of 160 by 44, as glossary_drawing.js reads
 * them; in rows of cells a letter is a block: r reused, c computed, p partial, d answer, f free, n running, e empty,
 * x evicted.
 */

export const TERMS = [
  { id: "kv-cache", drawing: [["dots", 8, 22, 4], ["arrow", 50, 22, 70, 22], ["cells", 78, 6, "rrrr"], ["cells", 78, 24, "rrrr"], ["word", 150, 18, "K"], ["word", 150, 36, "V"]] },
  { id: "block", topics: ["pool", "cache"], drawing: [["frame", 8, 10, 144, 24], ["dots", 17, 22, 16]] },
  { id: "block-table", topics: ["lanes"], drawing: [["cells", 36, 18, "rrrcp"], ["word", 44, 12, "1"], ["word", 62, 12, "2"], ["word", 80, 12, "3"], ["word", 98, 12, "4"], ["word", 116, 12, "5"]] },
  { id: "hash-chain", topics: ["tree"], drawing: [["cells", 8, 15, "r"], ["arrow", 26, 22, 44, 22], ["cells", 48, 15, "r"], ["arrow", 66, 22, 84, 22], ["cells", 88, 15, "c"], ["arrow", 106, 22, 124, 22], ["cells", 128, 15, "c"]] },
  { id: "parent-hash", topics: ["tree"], drawing: [["cells", 36, 15, "r"], ["cells", 108, 15, "r"], ["arrow", 104, 22, 58, 22], ["word", 80, 16, "#"]] },
  { id: "prefix-cache-hit", topics: ["lanes", "hit-rate"], drawing: [["cells", 26, 4, "ffff"], ["cells", 26, 26, "rrrcp"], ["line", 33, 19, 33, 25], ["line", 51, 19, 51, 25], ["line", 69, 19, 69, 25]] },
  { id: "cached-tokens", topics: ["reused", "hit-rate", "chart-tokens", "lanes"], drawing: [["bar", 8, 16, 96, "r"], ["bar", 106, 16, 46, "c"]] },
  { id: "hit-rate", topics: ["hit-rate", "chart-rate"], drawing: [["bar", 30, 8, 84, "r"], ["line", 30, 24, 130, 24], ["bar", 30, 29, 84, "r"], ["bar", 114, 29, 16, "c"]] },
  { id: "partial-tail", topics: ["lanes"], drawing: [["cells", 36, 15, "rrrr"], ["cells", 108, 15, "p"]] },
  { id: "divergence", topics: ["chart-tokens"], drawing: [["cells", 26, 4, "ffffff"], ["cells", 26, 26, "rrcccc"], ["line", 61, 0, 61, 44], ["word", 70, 24, "≠"]] },
  { id: "prefill", topics: ["chart-ttft"], drawing: [["bar", 8, 16, 90, "c"], ["cells", 104, 15, "ddd"]] },
  { id: "decode", drawing: [["bar", 8, 16, 40, "c"], ["cells", 54, 15, "ddddd"]] },
  { id: "ttft", topics: ["ttft", "lane-time", "chart-ttft"], drawing: [["bar", 8, 8, 90, "c"], ["cells", 104, 7, "ddd"], ["line", 8, 28, 8, 40], ["line", 104, 28, 104, 40], ["arrow", 10, 34, 102, 34]] },
  { id: "itl", drawing: [["cells", 16, 7, "d"], ["cells", 66, 7, "d"], ["cells", 116, 7, "d"], ["arrow", 26, 34, 70, 34], ["arrow", 78, 34, 120, 34]] },
  { id: "warm-cold", topics: ["ttft"], drawing: [["bar", 8, 8, 42, "r"], ["bar", 8, 26, 132, "c"]] },
  { id: "pool", topics: ["pool", "cache"], drawing: [["cells", 18, 5, "nnfffee"], ["cells", 18, 25, "nffeeee"]] },
  { id: "free-queue", topics: ["pool"], drawing: [["arrow", 30, 22, 8, 22], ["cells", 36, 15, "fffff"], ["arrow", 152, 22, 130, 22]] },
  { id: "eviction", topics: ["cache"], drawing: [["cells", 10, 26, "x"], ["arrow", 42, 18, 26, 28], ["cells", 46, 8, "fffff"]] },
  { id: "preemption", drawing: [["cells", 10, 15, "nnn"], ["arrow", 70, 22, 92, 22], ["cells", 98, 15, "nee"]] },
  { id: "salt", drawing: [["word", 16, 16, "a"], ["cells", 28, 5, "rrrr"], ["word", 16, 36, "b"], ["cells", 28, 25, "cccc"], ["word", 120, 26, "≠"]] },
  { id: "prefix-tree", topics: ["tree"], drawing: [["bar", 8, 12, 80, "r"], ["bar", 92, 3, 50, "f"], ["bar", 92, 17, 36, "f"], ["bar", 92, 31, 20, "f"]] },
  { id: "kv-cache-group", topics: ["pool"], drawing: [["cells", 26, 5, "rrrrrr"], ["cells", 26, 25, "eeeerr"]] },
  { id: "kv-events", topics: ["pool", "cache"], drawing: [["frame", 8, 10, 40, 24], ["cells", 20, 15, "r"], ["arrow", 52, 22, 106, 22], ["frame", 112, 10, 40, 24], ["cells", 124, 15, "r"]] },
  { id: "mirror", topics: ["cache", "tree"], drawing: [["cells", 10, 5, "rrf"], ["cells", 10, 25, "ffe"], ["word", 80, 26, "="], ["cells", 98, 5, "rrf"], ["cells", 98, 25, "ffe"]] },
  { id: "counters", topics: ["hit-rate", "reused", "chart-rate"], drawing: [["frame", 20, 10, 120, 24], ["word", 80, 27, "11,904 / 12,006"]] },
  { id: "usage", topics: ["chart-tokens", "chart-ttft"], drawing: [["word", 14, 29, "{"], ["bar", 28, 16, 70, "r"], ["bar", 100, 16, 30, "c"], ["word", 146, 29, "}"]] },
  { id: "basis", topics: ["lane-time", "lanes"], drawing: [["line", 10, 14, 150, 14], ["dashes", 10, 30, 150, 30]] },
];
