/** Why a prompt hit or missed, and what to change: forecast, verdicts, microscope, fixes and the prompt doctor. */

import { postJson, postLines, streamChat } from "../api.js";
import { freshSalt } from "../composer.js";
import { createCauses } from "../views/why/causes.js";
import { createFix } from "../views/why/fix.js";
import { createMicroscope } from "../views/why/microscope.js";
import { createPrompts } from "../views/why/prompts.js";
import { createRuler } from "../views/why/ruler.js";
import { createVerdictLinks } from "../views/why/verdict.js";
import { createExamining } from "../why/examining.js";
import { createFixing } from "../why/fixing.js";

/** {views, openMicroscope}. `asker`, `book` and `draft` are those of "Try it". */
export function wireWhy({ set, getState, getJson, hidesText, atNow, invalidate }, { asker, book, draft }) {
  const causes = createCauses();
  const microscope = createMicroscope({ getJson, set, causes });
  const fixing = createFixing({
    ask: async (requests, signal) => (hidesText() ? { breakers: [] } : postJson("api/remedy", requests, { signal })),
    send: atNow(streamChat),
    salt: freshSalt,
    onChange: (fix) => set({ fix }),
  });
  const fix = createFix({ fixing, book, getState });
  const examining = createExamining({
    ask: (lines, options) => postLines("api/lint", lines, options),
    onChange: (prompts) => set({ prompts }),
  });
  return {
    openMicroscope: microscope.open,
    views: [
      causes.view,
      microscope.view,
      fix.view,
      createPrompts({ examining, getState, onFix: fix.openFor }),
      createVerdictLinks({ book, onOpen: microscope.open, causes }),
      createRuler({ asker, draft, onTouch: invalidate }),
    ],
  };
}
