/** The views of the numbers' section, and what its buttons do. */

import { createNumbersActions } from "./actions.js";
import { createCoverage } from "./coverage.js";
import { createDoctor } from "./doctor.js";
import { createForecasts } from "./forecasts.js";
import { createGlance } from "./glance.js";
import { createPool } from "./pool.js";
import { createRates } from "./rates.js";
import { createNumbersSection } from "./section.js";
import { createStreams } from "./streams.js";
import { createFitAsker } from "./fit_asker.js";
import { createTimes } from "./times.js";

/** `set(fields)` changes the page's own state, `getUi()` is it; `post(path)` and `getJson(path)` as in api.js. */
export function createNumbers({ set, getUi, post, getJson }) {
  const { mark, askDoctor, askFit } = createNumbersActions({ set, getUi, post, getJson });
  return [
    createNumbersSection({ onTab: (numbers) => set({ numbers }) }),
    createCoverage(),
    createGlance(),
    createRates({ onMark: mark }),
    createForecasts(),
    createFitAsker({ ask: askFit }),
    createTimes(),
    createPool(),
    createStreams(),
    createDoctor({ ask: askDoctor }),
  ];
}
