/** The one axis that lanes and prefix tree draw on. The tree says what it needs; the lanes, drawn first, lay it out. */

import { layoutAxis } from "./axis.js";

export function createSharedAxis() {
  let key = "";
  let drawn = "";
  const shared = {
    axis: { segments: [], length: 0, cell: 0, fold: 0 },
    /** {edges, length} of the drawn tree; replaced only where it differs. */
    tree: null,
    needs(tree) {
      const now = JSON.stringify(tree);
      if (now !== key) shared.tree = tree;
      key = now;
    },
    /** The axis of these lanes, replaced only where it differs, so that what stands on it needn't be drawn anew. */
    layout(lanes, width, fold) {
      const axis = layoutAxis(lanes, width, { fold, tree: shared.tree });
      const now = JSON.stringify(axis);
      if (now !== drawn) shared.axis = axis;
      drawn = now;
      return shared.axis;
    },
  };
  return shared;
}
