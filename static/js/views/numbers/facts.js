/** A list of terms and values whose elements stay: only texts that changed are written. */

import { make, setAttribute, setChildren, setText } from "../../dom.js";

/** draw(rows): rows are {key, name, value, note, tone}, in order; `note` is smaller, under the value. */
export function createFacts(list) {
  const kept = new Map();
  return (rows) => {
    setChildren(list, rows.map(({ key, name, value, note = "", tone = null }) => {
      let item = kept.get(key);
      if (!item) {
        item = make("div", {}, make("dt"), make("dd", {}, make("span"), make("small")));
        kept.set(key, item);
      }
      const [term, described] = item.children;
      setText(term, name);
      setText(described.firstChild, value);
      setText(described.lastChild, note);
      setAttribute(item, "data-fact", key);
      setAttribute(item, "data-tone", tone);
      return item;
    }));
  };
}
