/** The one axis that lanes and prefix tree draw on. The tree says what it needs; the lanes, drawn first, lay it out. */

import { layoutAxis } from "./axis.js";

export function createSharedAxis() {
  let key = "";
  const shared = {
    axis: { segments: [], length: 0, cell: 0, fold: 0 },
    /** {edges, length} of the drawn tree; replaced only where it differs. */
    tree: null,
    needs(tree) {
      const now = JSON.stringify(tree);
      if (now !== key) shared.tree = tree;
      key = now;
    },
    layout(lanes, width, fold) {
      shared.axis = layoutAxis(lanes, width, { fold, tree: shared.tree });
      return shared.axis;
    },
  };
  return shared;
}
