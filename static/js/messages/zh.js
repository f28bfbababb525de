/** 简体中文词条：页面的每个部分一个文件。 */

import figures from "./zh/figures.js";
import frame from "./zh/frame.js";
import pictures from "./zh/pictures.js";
import tryIt from "./zh/try.js";

export default { ...frame, ...figures, ...pictures, ...tryIt };
