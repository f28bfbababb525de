/** The numbers: their tabs, and all charts of the page. */

import { getJson, post } from "../api.js";
import { createSight } from "../charts/chart.js";
import { createChartPanels } from "../views/chart_panels.js";
import { createFigures } from "../views/figures.js";
import { createNumbers } from "../views/numbers/numbers.js";
import { focusOn } from "./focus.js";

/** {views, actions}. */
export function wireNumbers({ set, getUi, getPalette, invalidate }) {
  return {
    views: [
      createFigures(),
      ...createNumbers({ set, getUi, post, getJson }),
      ...createChartPanels({ getPalette, sight: createSight(invalidate), onFirstTokenBy: (ttftBy) => set({ ttftBy }) }),
    ],
    actions: { numbers: focusOn("#numbers-tabs [aria-selected=true]") },
  };
}
