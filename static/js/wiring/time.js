/** The timeline: which moment the page shows. */

import { createTimelineView } from "../views/timeline.js";
import { focusOn } from "./focus.js";

/** {views, actions}. */
export function wireTime({ time, getPalette }) {
  const { replay } = time;
  const now = () => performance.now();
  return {
    views: [createTimelineView({ ...time, getPalette })],
    actions: {
      time: focusOn("#timeline-track", { preventScroll: true }),
      pause: () => replay.toggle(now()),
      slower: () => replay.faster(-1, now()),
      faster: () => replay.faster(1, now()),
      live: replay.live,
    },
  };
}
