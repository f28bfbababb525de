/** The causes: a drawer at the side, a section a cause, each with an address of its own (#why-diverges). */

import { CAUSES, anchorOf, causeOf, isCause } from "../../causes.js";
import { byId, make, setChildren } from "../../dom.js";
import { drawing } from "../../glossary_drawing.js";
import { t } from "../../words.js";

/** A link to a cause's explanation, named by it; `open` shows it. */
export function causeLink(code, open) {
  const link = make("a", { href: `#${anchorOf(code)}`, class: "cause-link" }, isCause(code) ? t(`cause.${code}.name`) : code);
  link.addEventListener("click", (event) => {
    event.preventDefault();
    open(code);
  });
  return link;
}

/** Listens to the address. Answers {view, open(code)}. */
export function createCauses({ win = window } = {}) {
  const drawer = byId("causes");
  const list = byId("causes-list");
  let drawnIn = null;

  byId("causes-close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
  drawer.addEventListener("close", () => {
    if (causeOf(win.location.hash) !== null) win.history.replaceState(null, "", win.location.pathname + win.location.search);
  });
  win.addEventListener("hashchange", follow);

  function follow() {
    const code = causeOf(win.location.hash);
    if (code !== null) show(code);
    else if (drawer.open) drawer.close();
  }

  function open(code) {
    if (isCause(code)) win.history.replaceState(null, "", `#${anchorOf(code)}`);
    show(code);
  }

  function show(code) {
    build();
    if (!drawer.open) drawer.showModal();
    const entry = isCause(code) ? byId(anchorOf(code)) : null;
    for (const node of list.children) node.toggleAttribute("data-chosen", node === entry);
    entry?.scrollIntoView({ block: "start" });
    entry?.focus({ preventScroll: true });
  }

  /** The words of one language, built when they are first looked at. */
  function build() {
    if (drawnIn === document.documentElement.lang) return;
    drawnIn = document.documentElement.lang;
    setChildren(list, CAUSES.map(entryOf));
  }

  function view() {
    if (drawer.open) build();
    return null;
  }

  follow();
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
