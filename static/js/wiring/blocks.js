/** The blocks: lanes of requests, the prefix tree over them, the cache, and the card of the one that is pointed at. */

import { blockPath } from "../api.js";
import { createBlockWords } from "../block_words.js";
import { createSharedAxis } from "../shared_axis.js";
import { createCache } from "../views/cache.js";
import { createCard, createCardLoader } from "../views/card.js";
import { createLanes } from "../views/lanes.js";
import { createSteps } from "../views/steps.js";
import { createTree } from "../views/tree.js";
import { focusOn } from "./focus.js";

/** {views, actions, forgetText}: forgetText() lets go of all text of blocks that was fetched. */
export function wireBlocks({ set, getUi, getState, getShown, getJson, getPalette, effects, invalidate }, { openMicroscope }) {
  const load = (block) => getJson(blockPath(block));
  const cards = createCardLoader({ load, onLoaded: invalidate });
  const words = createBlockWords({ load, onLoaded: invalidate });
  const shared = createSharedAxis();

  function setFocus(focus) {
    if (focus === null && getUi().focus === null) return;
    cards.want(focus?.quiet ? null : focus);
    set({ focus });
  }

  const chosenRequest = () =>
    document.activeElement?.closest?.("[data-request]")?.dataset.request ?? getUi().focus?.request ?? null;

  function explainChosen() {
    const id = chosenRequest() ?? getState().requestOrder[0];
    if (id !== undefined) openMicroscope(id);
  }

  const unfold = () => set({ unfolded: !getUi().unfolded });
  const showWords = () => set({ words: !getUi().words });
  const common = { effects, getPalette, setFocus };
  const tree = createTree({ ...common, shared, words, onZoom: (zoom) => set({ zoom }), onWords: showWords });
  const steps = createSteps({ getState: getShown, setFocus, invalidate });
  return {
    views: [
      tree.prepare,
      createLanes({ ...common, shared, onOpen: openMicroscope, onUnfold: unfold }),
      tree.draw,
      createCache({ ...common, onWhole: () => set({ wholePool: !getUi().wholePool }) }),
      createCard({ loader: cards }),
      steps.view,
    ],
    actions: {
      requests: focusOn(".lane-list .lane"),
      tree: focusOn("#tree-stage"),
      cache: focusOn("#cache-stage"),
      why: explainChosen,
      words: showWords,
      unfold,
      all: () => set({ zoom: null }),
      steps: () => steps.open(chosenRequest()),
    },
    forgetText() {
      cards.forget();
      words.forget();
    },
  };
}
