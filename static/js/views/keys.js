/** The keys of the page, in one table: what the `?` sheet lists is what they do. */

import { byId, make, setAttribute, setChildren } from "../dom.js";
import { t } from "../words.js";

/** Single keys and what each does; its words are the catalogues' `keys.ACTION`, which follow "Press … to". */
export const KEYS = [
  { key: "?", action: "sheet" },
  { key: "t", action: "try" },
  { key: "r", action: "requests" },
  { key: "x", action: "tree" },
  { key: "c", action: "cache" },
  { key: "m", action: "numbers" },
  { key: "y", action: "why" },
  { key: "w", action: "words" },
  { key: "u", action: "unfold" },
  { key: "a", action: "all" },
  { key: "g", action: "glossary" },
  { key: "s", action: "steps" },
  { key: "e", action: "time" },
  { key: "k", action: "pause" },
  { key: ",", action: "slower" },
  { key: ".", action: "faster" },
  { key: "v", action: "live" },
  { key: "h", action: "redact" },
  { key: "o", action: "servers" },
  { key: "n", action: "tourNext" },
  { key: "b", action: "tourBack" },
  { key: "0", action: "tourReset" },
  { key: "d", action: "theme" },
  { key: "p", action: "projector" },
  { key: "l", action: "language" },
];

const WITHIN = [
  { key: "← → ↑ ↓", action: "arrows" },
  { key: "Enter", action: "enter" },
  { key: "Esc", action: "escape" },
];

/** The action that a key press asks for, or null: none while text is written or with a modifier held. Pure. */
export function actionOf({ key, ctrlKey = false, metaKey = false, altKey = false, target = null }, { enabled = true } = {}) {
  if (ctrlKey || metaKey || altKey) return null;
  if (target?.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return null;
  const found = KEYS.find((entry) => entry.key === key)?.action ?? null;
  // The sheet stays within reach, since it is where the others are switched on again.
  return enabled || found === "sheet" ? found : null;
}

/** Listens, and answers the view of the sheet. */
export function createKeys({ actions, store }) {
  const sheet = byId("keys");
  const toggle = byId("keys-on");
  const button = byId("keys-button");
  toggle.checked = store.get("keys") !== "off";
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
  let paint = null;
  return (_, ui) => {
    if (ui.paint !== paint) setChildren(byId("keys-list"), [...KEYS, ...WITHIN].map(row));
    paint = ui.paint;
    return null;
  };
}

const row = ({ key, action }) => make("div", {}, make("dt", {}, make("kbd", {}, key)), make("dd", {}, t(`keys.${action}`)));
