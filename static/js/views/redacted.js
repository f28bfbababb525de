/** The switch of redacted mode. Where the dashboard itself shows no text, it is on for good. */

import { byId, setAttribute } from "../dom.js";
import { isRedacted } from "../redact.js";
import { t } from "../words.js";

export function createRedactSwitch({ onSwitch }) {
  const button = byId("redact-switch");
  button.addEventListener("click", onSwitch);
  let drawn = [];
  return (state, ui) => {
    const always = state.hello?.redact === true;
    const on = isRedacted(state, ui);
    if (on === drawn[0] && always === drawn[1] && ui.paint === drawn[2]) return null;
    drawn = [on, always, ui.paint];
    document.body.toggleAttribute("data-redacted", on);
    setAttribute(button, "aria-pressed", String(on));
    setAttribute(button, "aria-disabled", String(always));
    setAttribute(button, "title", t(always ? "redact.always" : on ? "redact.on" : "redact.off"));
    return null;
  };
}
