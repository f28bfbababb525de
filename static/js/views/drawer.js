/** A drawer at the side, a section an entry, each with an address of its own: opens and closes as the address says. */

import { byId, setChildren } from "../dom.js";

/**
 * Drives the dialog `id` with its `id`-list and `id`-close. entries(): its sections, made anew for each language.
 * chosenOf(hash): what an address's fragment names, null for something else. anchorOf(chosen): the fragment of it, which is
 * its section's id too; null for what has none. Answers {view, open(chosen), toggle(chosen)}.
 */
export function createDrawer({ id, entries, chosenOf, anchorOf, win = window }) {
  const drawer = byId(id);
  const list = byId(`${id}-list`);
  let drawnIn = null;

  byId(`${id}-close`).addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
  drawer.addEventListener("close", () => {
    if (chosenOf(win.location.hash) !== null) win.history.replaceState(null, "", win.location.pathname + win.location.search);
  });
  win.addEventListener("hashchange", follow);

  function follow() {
    const chosen = chosenOf(win.location.hash);
    if (chosen !== null) show(chosen);
    else if (drawer.open) drawer.close();
  }

  function open(chosen) {
    const anchor = anchorOf(chosen);
    if (anchor !== null) win.history.replaceState(null, "", `#${anchor}`);
    show(chosen);
  }

  function show(chosen) {
    build();
    if (!drawer.open) drawer.showModal();
    const anchor = anchorOf(chosen);
    const entry = [...list.children].find((node) => node.id === anchor);
    for (const node of list.children) node.toggleAttribute("data-chosen", node === entry);
    entry?.scrollIntoView({ block: "start" });
    entry?.focus({ preventScroll: true });
  }

  /** The words of one language, built when they are first looked at. */
  function build() {
    if (drawnIn === document.documentElement.lang) return;
    drawnIn = document.documentElement.lang;
    setChildren(list, entries());
  }

  function view() {
    if (drawer.open) build();
    return null;
  }

  follow();
  return { view, open, toggle: (chosen) => (drawer.open ? drawer.close() : open(chosen)) };
}
