/** The English catalogue: a file for each part of the page. */

import figures from "./en/figures.js";
import frame from "./en/frame.js";
import glossary from "./en/glossary.js";
import info from "./en/info.js";
import pictures from "./en/pictures.js";
import tryIt from "./en/try.js";

export default { ...frame, ...figures, ...glossary, ...info, ...pictures, ...tryIt };
