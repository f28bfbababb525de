/**
 * The closed list of causes that a verdict may name, in reading order: {code, drawing}. Words are the catalogues'
 * `cause.CODE.{name,text,advice}`; drawings as in glossary.js, the earlier prompt above, the one in question below.
 */

const ROW = 26;

export const CAUSES = [
  { code: "full_hit", drawing: [["cells", 26, 4, "ffffff"], ["cells", 26, ROW, "rrrrrp"]] },
  { code: "exact_multiple", drawing: [["cells", 26, 4, "ffffff"], ["cells", 26, ROW, "rrrrrc"], ["line", 133, 0, 133, 44]] },
  { code: "reused", drawing: [["cells", 26, 4, "ffffff"], ["cells", 26, ROW, "rrrrcp"]] },
  { code: "first_seen", drawing: [["dashes", 26, 11, 130, 11], ["cells", 26, ROW, "cccccp"]] },
  { code: "too_short", drawing: [["cells", 26, 4, "f"], ["cells", 26, ROW, "c"], ["line", 36, 0, 36, 44]] },
  { code: "diverges", drawing: [["cells", 26, 4, "ffffff"], ["cells", 26, ROW, "rrrccp"], ["line", 83, 0, 83, 44], ["word", 92, 24, "≠"]] },
  { code: "variable_first", drawing: [["cells", 26, 4, "xfffff"], ["cells", 26, ROW, "cccccp"], ["word", 33, 24, "≠"], ["line", 51, 19, 51, 25], ["line", 69, 19, 69, 25], ["line", 87, 19, 87, 25]] },
  { code: "alignment", drawing: [["cells", 26, 4, "fffp"], ["cells", 26, ROW, "rrrccp"], ["line", 90, 0, 90, 44]] },
  { code: "evicted", drawing: [["cells", 26, 4, "xxxx"], ["cells", 26, ROW, "ccccp"]] },
  { code: "reset", drawing: [["cells", 26, 4, "eeee"], ["cells", 26, ROW, "ccccp"]] },
  { code: "other_salt", drawing: [["word", 14, 16, "a"], ["cells", 26, 4, "ffff"], ["word", 14, 38, "b"], ["cells", 26, ROW, "ccccp"]] },
  { code: "other_adapter", drawing: [["frame", 20, 1, 84, 20], ["cells", 26, 4, "ffff"], ["cells", 26, ROW, "ccccp"]] },
  { code: "other_model", drawing: [["frame", 20, 1, 84, 20], ["cells", 26, 4, "ffff"], ["frame", 20, 23, 102, 20], ["cells", 26, ROW, "ccccp"]] },
  { code: "other_image", drawing: [["frame", 26, 3, 16, 16], ["cells", 46, 4, "fff"], ["frame", 26, 25, 16, 16], ["cells", 46, ROW, "cccp"], ["word", 112, 30, "≠"]] },
  { code: "other_rank", drawing: [["word", 14, 16, "0"], ["cells", 26, 4, "ffff"], ["word", 14, 38, "1"], ["cells", 26, ROW, "ccccp"]] },
  { code: "other_server", drawing: [["frame", 8, 2, 66, 40], ["cells", 14, 15, "fff"], ["frame", 86, 2, 66, 40], ["cells", 92, 15, "ccc"]] },
  { code: "still_computing", drawing: [["cells", 26, 4, "nnn"], ["arrow", 84, 11, 104, 11], ["cells", 26, ROW, "ccccp"]] },
  { code: "coarse_alignment", drawing: [["frame", 22, 1, 58, 20], ["cells", 26, 4, "fff"], ["frame", 82, 1, 58, 20], ["cells", 86, 4, "ffe"], ["cells", 26, ROW, "rrrccp"]] },
  { code: "cache_off", drawing: [["dashes", 26, 11, 130, 11], ["cells", 26, ROW, "ccccp"], ["word", 146, 38, "∅"]] },
  { code: "lookup_skipped", drawing: [["cells", 26, 4, "ffff"], ["arrow", 112, 11, 136, 11], ["cells", 26, ROW, "ccccp"]] },
  { code: "inconsistent", drawing: [["word", 80, 28, "210 / 199"]] },
  { code: "unexplained", drawing: [["cells", 26, ROW, "ccccp"], ["word", 80, 18, "?"]] },
  { code: "unknown", drawing: [["cells", 26, 15, "eeeee"], ["word", 130, 28, "?"]] },
  { code: "failed", drawing: [["cells", 26, 15, "cc"], ["line", 70, 12, 86, 32], ["line", 86, 12, 70, 32]] },
];

const KNOWN = new Map(CAUSES.map((cause) => [cause.code, cause]));

/** Whether this page has words for a cause. */
export const isCause = (code) => KNOWN.has(code);

/** The name that a cause's explanation has on the page, as in a verdict's `anchor`. */
export const anchorOf = (code) => `why-${code.replaceAll("_", "-")}`;

/** The cause that an address's fragment names; null for something else. */
export function causeOf(hash) {
  const code = hash.startsWith("#why-") ? hash.slice("#why-".length).replaceAll("-", "_") : null;
  return isCause(code) ? code : null;
}

/** The cause that explains a verdict: of what was only partly reused, what kept the rest. */
export function explained({ code, params }) {
  return typeof params?.loss === "string" ? params.loss : code;
}
