/** The glossary: a drawer with a section a term, each with an address of its own (#glossary-block). */

import { byId, make } from "../dom.js";
import { TERMS } from "../glossary.js";
import { drawing } from "../glossary_drawing.js";
import { t } from "../words.js";
import { createDrawer } from "./drawer.js";

const ID = "glossary";

/** The term that an address's fragment names: an id, "" for the glossary itself, null for something else. Pure. */
export function termOf(hash) {
  if (hash === `#${ID}`) return "";
  const id = hash.startsWith(`#${ID}-`) ? hash.slice(ID.length + 2) : null;
  return TERMS.some((term) => term.id === id) ? id : null;
}

const anchorOf = (id) => (id === "" ? ID : `${ID}-${id}`);

/** Listens to its button and to the address. Answers {view, open(id), toggle}. */
export function createGlossary({ win = window } = {}) {
  const { view, open, toggle } = createDrawer({ id: ID, entries: () => TERMS.map(entryOf), chosenOf: termOf, anchorOf, win });
  byId("glossary-button").addEventListener("click", () => open(""));
  return { view, open, toggle: () => toggle("") };
}

function entryOf({ id, drawing: shapes }) {
  const anchor = anchorOf(id);
  return make(
    "section",
    { id: anchor, class: "term", tabindex: "-1", "aria-labelledby": `${anchor}-name` },
    make("h3", { id: `${anchor}-name` }, make("a", { href: `#${anchor}` }, t(`glossary.${id}.name`))),
    drawing(shapes),
    make("p", {}, t(`glossary.${id}.text`)),
  );
}
