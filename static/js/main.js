/** Puts the page together: the live socket to the page, the page to its parts, and their views into one frame. */

import { createAppearance, speakFirst } from "./appearance.js";
import { listen } from "./live.js";
import { createPage } from "./page.js";
import { createPlotlyLoader } from "./plotly.js";
import { remembered } from "./remembered.js";
import { createKeys } from "./views/keys.js";
import { wireBlocks } from "./wiring/blocks.js";
import { wireHead } from "./wiring/head.js";
import { wireNumbers } from "./wiring/numbers.js";
import { wireTime } from "./wiring/time.js";
import { wireTry } from "./wiring/try.js";
import { wireWhy } from "./wiring/why.js";

/** Each part of the page is {views, actions}: what draws it, and what keys do in it by the names of views/keys.js. */
function start() {
  speakFirst();
  const page = createPage({ onBroken: (error) => live.beginAnew(error) });
  const appearance = createAppearance(page);
  const tryIt = wireTry(page);
  const why = wireWhy(page, tryIt);
  const blocks = wireBlocks(page, why);
  const head = wireHead(page, { appearance, forgetText: blocks.forgetText });
  const parts = [head, tryIt, why, blocks, wireTime(page), wireNumbers(page)];
  const actions = Object.assign({}, ...parts.map((part) => part.actions));
  page.show([createKeys({ store: remembered, actions }), ...parts.flatMap((part) => part.views), createPlotlyLoader({ onLoaded: page.invalidate })]);
  const live = listen(page);
}

start();
