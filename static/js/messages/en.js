/** The English catalogue: a file for each part of the page. */

import charts from "./en/charts.js";
import figures from "./en/figures.js";
import forecast from "./en/forecast.js";
import frame from "./en/frame.js";
import glossary from "./en/glossary.js";
import info from "./en/info.js";
import numbers from "./en/numbers.js";
import pictures from "./en/pictures.js";
import time from "./en/time.js";
import steps from "./en/steps.js";
import tour from "./en/tour.js";
import tryIt from "./en/try.js";

export default { ...frame, ...figures, ...forecast, ...glossary, ...info, ...charts, ...numbers, ...pictures, ...time, ...steps, ...tour, ...tryIt };
