/** The English catalogue: a file for each part of the page. */

import causes from "./en/causes.js";
import charts from "./en/charts.js";
import figures from "./en/figures.js";
import fix from "./en/fix.js";
import forecast from "./en/forecast.js";
import frame from "./en/frame.js";
import glossary from "./en/glossary.js";
import info from "./en/info.js";
import microscope from "./en/microscope.js";
import numbers from "./en/numbers.js";
import pictures from "./en/pictures.js";
import prompts from "./en/prompts.js";
import steps from "./en/steps.js";
import time from "./en/time.js";
import tour from "./en/tour.js";
import tryIt from "./en/try.js";

export default { ...frame, ...figures, ...fix, ...forecast, ...glossary, ...info, ...causes, ...charts, ...microscope, ...numbers, ...pictures, ...prompts, ...steps, ...time, ...tour, ...tryIt };
