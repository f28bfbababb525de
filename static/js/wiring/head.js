/** What stands around the pictures: the strip with its switches, notices, explanations, and what of it is hidden. */

import { remembered } from "../remembered.js";
import { createGlossary } from "../views/glossary.js";
import { createInfo } from "../views/info.js";
import { createNotices } from "../views/notices.js";
import { createRedactSwitch } from "../views/redacted.js";
import { createServerChoice } from "../views/server_choice.js";
import { createStrip } from "../views/strip.js";
import { focusOn } from "./focus.js";

/** {views, actions}. forgetText(): lets go of all text that was fetched. */
export function wireHead({ set, getUi, getState }, { appearance, forgetText }) {
  const { switchTheme, switchProjector, switchLanguage } = appearance;
  const glossary = createGlossary();

  /** What was fetched before is fetched again, in the other form. */
  function switchRedacted() {
    if (getState().hello?.redact) return;
    for (const dialog of document.querySelectorAll("dialog:modal")) dialog.close();
    forgetText();
    set({ redacted: !getUi().redacted, focus: null });
    remembered.set("redacted", getUi().redacted ? "on" : "off");
  }

  function choose(server) {
    set({ server, focus: null, zoom: null });
    remembered.set("server", server);
  }

  return {
    views: [
      glossary.view,
      createInfo({ onTerm: glossary.open }),
      createRedactSwitch({ onSwitch: switchRedacted }),
      createServerChoice({ onChoose: choose }),
      createStrip({ onTheme: switchTheme, onLanguage: switchLanguage }),
      createNotices(),
    ],
    actions: {
      glossary: glossary.toggle,
      redact: switchRedacted,
      servers: focusOn("#server-choice"),
      theme: switchTheme,
      projector: switchProjector,
      language: switchLanguage,
    },
  };
}
