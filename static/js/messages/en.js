/** The English catalogue: a file for each part of the page. */

import figures from "./en/figures.js";
import frame from "./en/frame.js";
import pictures from "./en/pictures.js";
import tryIt from "./en/try.js";

export default { ...frame, ...figures, ...pictures, ...tryIt };
