/** The keys of the page, in one table: what the `?` sheet lists is what they do. */

import { byId, make, setAttribute } from "../dom.js";

/** Single keys; `what` follows "Press … to". */
export const KEYS = [
  { key: "?", action: "sheet", what: "show or hide this sheet" },
  { key: "t", action: "try", what: "write in “Try it”" },
  { key: "r", action: "requests", what: "go to the requests" },
  { key: "x", action: "tree", what: "go to the prefix tree" },
  { key: "c", action: "cache", what: "go to the cache" },
  { key: "w", action: "words", what: "show or hide words in the tree" },
  { key: "u", action: "unfold", what: "fold or unfold long prompts" },
  { key: "a", action: "all", what: "show the whole tree again" },
  { key: "d", action: "theme", what: "switch between light and dark" },
  { key: "p", action: "projector", what: "make everything larger, for a projector" },
];

const WITHIN = [
  ["← → ↑ ↓", "move within requests, tree and cache; each block shows its card"],
  ["Enter", "zoom in on a branch of the tree, or out again"],
  ["Esc", "close the card or this sheet, zoom out"],
];

/** The action that a key press asks for, or null: none while text is written or with a modifier held. Pure. */
export function actionOf({ key, ctrlKey = false, metaKey = false, altKey = false, target = null }, { enabled = true } = {}) {
  if (ctrlKey || metaKey || altKey) return null;
  if (target?.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return null;
  const found = KEYS.find((entry) => entry.key === key)?.action ?? null;
  // The sheet stays within reach, since it is where the others are switched on again.
  return enabled || found === "sheet" ? found : null;
}

export function createKeys({ actions, store }) {
  const sheet = byId("keys");
  const toggle = byId("keys-on");
  const button = byId("keys-button");
  toggle.checked = store.get("keys") !== "off";
  byId("keys-list").append(...KEYS.map(({ key, what }) => row(key, what)), ...WITHIN.map(([key, what]) => row(key, what)));
  const run = { ...actions, sheet: () => (sheet.open ? sheet.close() : sheet.showModal()) };
  button.addEventListener("click", run.sheet);
  byId("keys-close").addEventListener("click", () => sheet.close());
  sheet.addEventListener("click", (event) => {
    if (event.target === sheet) sheet.close();
  });
  toggle.addEventListener("change", () => store.set("keys", toggle.checked ? "on" : "off"));
  document.addEventListener("keydown", (event) => {
    const action = actionOf(event, { enabled: toggle.checked });
    if (action === null || (sheet.open && action !== "sheet")) return;
    event.preventDefault();
    run[action]();
  });
  setAttribute(button, "aria-haspopup", "dialog");
}

const row = (key, what) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, what));
