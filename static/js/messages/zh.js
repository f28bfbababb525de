/** The Simplified Chinese catalogue: a file for each part of the page. */

import causes from "./zh/causes.js";
import charts from "./zh/charts.js";
import figures from "./zh/figures.js";
import fix from "./zh/fix.js";
import forecast from "./zh/forecast.js";
import frame from "./zh/frame.js";
import glossary from "./zh/glossary.js";
import info from "./zh/info.js";
import microscope from "./zh/microscope.js";
import numbers from "./zh/numbers.js";
import pictures from "./zh/pictures.js";
import prompts from "./zh/prompts.js";
import steps from "./zh/steps.js";
import time from "./zh/time.js";
import tour from "./zh/tour.js";
import tryIt from "./zh/try.js";

export default { ...frame, ...figures, ...fix, ...forecast, ...glossary, ...info, ...causes, ...charts, ...microscope, ...numbers, ...pictures, ...prompts, ...steps, ...time, ...tour, ...tryIt };
