/** The causes: a drawer with a section a cause, each with an address of its own (#why-diverges). */

import { CAUSES, anchorOf, causeOf, isCause } from "../../causes.js";
import { make } from "../../dom.js";
import { drawing } from "../../glossary_drawing.js";
import { t } from "../../words.js";
import { createDrawer } from "../drawer.js";

/** A link to a cause's explanation, named by it; `open` shows it. */
export function causeLink(code, open) {
  const link = make("a", { href: `#${anchorOf(code)}`, class: "cause-link" }, isCause(code) ? t(`cause.${code}.name`) : code);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    open(code);
  });
  return link;
}

/** Listens to the address. Answers {view, open(code)}; a code that this page has no words for opens the list. */
export function createCauses({ win = window } = {}) {
  const { view, open } = createDrawer({
    id: "causes",
    entries: () => CAUSES.map(entryOf),
    chosenOf: causeOf,
    anchorOf: (code) => (isCause(code) ? anchorOf(code) : null),
    win,
  });
  return { view, open };
}

function entryOf({ code, drawing: shapes }) {
  const anchor = anchorOf(code);
  return make(
    "section",
    { id: anchor, class: "term", tabindex: "-1", "aria-labelledby": `${anchor}-name` },
    make("h3", { id: `${anchor}-name` }, make("a", { href: `#${anchor}` }, t(`cause.${code}.name`))),
    drawing(shapes),
    make("div", {}, make("p", {}, t(`cause.${code}.text`)), make("p", { class: "advice" }, make("b", {}, t("causes.advice")), " ", t(`cause.${code}.advice`))),
  );
}
