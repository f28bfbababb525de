/**
 * The info buttons: each number's says what it is, over which window, where it comes from and how it is made.
 * A template writes `<button class="info" data-info="TOPIC" type="button">i</button>`, code calls infoButton(TOPIC); the
 * words are the catalogues' `info.TOPIC.{name,what,window,source,formula}`.
 */

import { byId, make, setAttribute } from "../dom.js";
import { TERMS } from "../glossary.js";
import { t } from "../words.js";

const PARTS = ["window", "source", "formula"];
const GAP = 8;

/** A button that explains `topic`. */
export function infoButton(topic) {
  const button = make("button", { class: "info", type: "button", "data-info": topic }, "i");
  name(button);
  return button;
}

/** The glossary's terms that belong to `topic`. Pure. */
export const termsOf = (topic) => TERMS.filter(({ topics }) => topics?.includes(topic)).map(({ id }) => id);

function name(button) {
  setAttribute(button, "aria-label", t("info.about", { name: t(`info.${button.dataset.info}.name`) }));
  setAttribute(button, "aria-haspopup", "dialog");
  // Tells the browser that a press on it isn't one beside the panel, which would close what it opens.
  setAttribute(button, "popovertarget", "info");
}

/** One popover for all of them. `onTerm(id)` opens the glossary. Answers the view that names the buttons. */
export function createInfo({ onTerm }) {
  const panel = byId("info");
  let source = null;

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-info]");
    if (!button) return;
    event.preventDefault();
    if (button === source && panel.matches(":popover-open")) panel.hidePopover();
    else open(button);
  });

  function open(button) {
    source = button;
    panel.replaceChildren(...content(button.dataset.info));
    if (!panel.matches(":popover-open")) panel.showPopover({ source: button });
    place(panel, button.getBoundingClientRect());
    panel.focus({ preventScroll: true });
  }

  function content(topic) {
    const list = make("dl");
    for (const part of PARTS) list.append(make("dt", {}, t(`info.${part}`)), make("dd", {}, t(`info.${topic}.${part}`)));
    const terms = termsOf(topic).map((id) => {
      const link = make("a", { href: `#glossary-${id}` }, t(`glossary.${id}.name`));
      link.addEventListener("click", (event) => {
        event.preventDefault();
        panel.hidePopover();
        onTerm(id);
      });
      return link;
    });
    const title = make("h2", { id: "info-title" }, t(`info.${topic}.name`));
    return [title, make("p", {}, t(`info.${topic}.what`)), list, make("p", { class: "info-terms" }, ...terms)];
  }

  let paint = null;
  return (_, ui) => {
    if (ui.paint !== paint) document.querySelectorAll("[data-info]").forEach(name);
    paint = ui.paint;
    return null;
  };
}

/** Below the button, or above it where there is more room; always whole within the window. */
function place(panel, { left, top, bottom }) {
  const { width, height } = panel.getBoundingClientRect();
  const below = bottom + GAP + height <= window.innerHeight ? bottom + GAP : Math.max(GAP, top - GAP - height);
  panel.style.left = `${Math.max(GAP, Math.min(left - 24, window.innerWidth - width - GAP))}px`;
  panel.style.top = `${below}px`;
}
