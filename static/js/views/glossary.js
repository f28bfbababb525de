/** The glossary: a drawer at the side, a section a term, each with an address of its own (#glossary-block). */

import { byId, make, setChildren } from "../dom.js";
import { TERMS } from "../glossary.js";
import { drawing } from "../glossary_drawing.js";
import { t } from "../words.js";

const PREFIX = "#glossary";

/** The term that an address's fragment names: an id, "" for the glossary itself, null for something else. Pure. */
export function termOf(hash) {
  if (hash === PREFIX) return "";
  const id = hash.startsWith(`${PREFIX}-`) ? hash.slice(PREFIX.length + 1) : null;
  return TERMS.some((term) => term.id === id) ? id : null;
}

/** Listens to its button and to the address. Answers {view, open(id), toggle}. */
export function createGlossary({ win = window } = {}) {
  const drawer = byId("glossary");
  const list = byId("glossary-list");
  let drawnIn = null;

  byId("glossary-button").addEventListener("click", () => open(""));
  byId("glossary-close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
  drawer.addEventListener("close", () => {
    if (termOf(win.location.hash) !== null) win.history.replaceState(null, "", win.location.pathname + win.location.search);
  });
  win.addEventListener("hashchange", follow);

  function follow() {
    const id = termOf(win.location.hash);
    if (id !== null) show(id);
    else if (drawer.open) drawer.close();
  }

  function open(id) {
    win.history.replaceState(null, "", id === "" ? PREFIX : `${PREFIX}-${id}`);
    show(id);
  }

  function show(id) {
    build();
    if (!drawer.open) drawer.showModal();
    const entry = id === "" ? null : byId(`glossary-${id}`);
    for (const node of list.children) node.toggleAttribute("data-chosen", node === entry);
    entry?.scrollIntoView({ block: "start" });
    entry?.focus({ preventScroll: true });
  }

  /** The words of one language, built when it is first looked at. */
  function build() {
    if (drawnIn === document.documentElement.lang) return;
    drawnIn = document.documentElement.lang;
    setChildren(list, TERMS.map(entryOf));
  }

  function view() {
    if (drawer.open) build();
    return null;
  }

  follow();
  return { view, open, toggle: () => (drawer.open ? drawer.close() : open("")) };
}

function entryOf({ id, drawing: shapes }) {
  return make(
    "section",
    { id: `glossary-${id}`, class: "term", tabindex: "-1", "aria-labelledby": `glossary-${id}-name` },
    make("h3", { id: `glossary-${id}-name` }, make("a", { href: `${PREFIX}-${id}` }, t(`glossary.${id}.name`))),
    drawing(shapes),
    make("p", {}, t(`glossary.${id}.text`)),
  );
}
