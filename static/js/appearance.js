/** How the page looks and which language it speaks: the switches, what is remembered of them, and paper. */

import { remembered } from "./remembered.js";
import { LANGUAGES, firstLanguage, language, translate, useLanguage } from "./words.js";

/** Before anything is drawn: the language that was chosen here before, else the browser's. */
export function speakFirst() {
  speak(firstLanguage(remembered.get("language"), navigator.languages));
}

/** Puts the template's words into a language; the views follow when they are drawn. */
function speak(tag) {
  useLanguage(tag);
  document.documentElement.lang = LANGUAGES[tag].lang;
  translate(document);
}

/** Has the page drawn anew whenever it looks different, and answers what switches it. */
export function createAppearance({ set, redraw, repaint, invalidate, drawAtOnce }) {
  new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme", "data-projector"] });
  new ResizeObserver(onWidth(redraw, invalidate)).observe(document.getElementById("main"));
  document.fonts?.ready.then(repaint);
  printInLight((printing) => {
    set({ printing });
    repaint();
    drawAtOnce();
  });
  return {
    switchLanguage() {
      speak(language() === "en" ? "zh" : "en");
      remembered.set("language", language());
      redraw();
    },
    switchTheme() {
      const root = document.documentElement;
      root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
      remembered.set("theme", root.dataset.theme);
    },
    switchProjector() {
      const on = document.documentElement.toggleAttribute("data-projector");
      remembered.set("projector", on ? "on" : "off");
    },
  };
}

/** The page's width is everyone's; its height alone is that of what grew in it, which was drawn already. */
function onWidth(redraw, invalidate) {
  let before = null;
  return ([{ contentRect }]) => {
    if (contentRect.width === before) return invalidate();
    before = contentRect.width;
    return redraw();
  };
}

/** Paper is white: the page is printed in light colours, whatever it is shown in. */
function printInLight(redraw) {
  const root = document.documentElement;
  let shown = null;
  window.addEventListener("beforeprint", () => {
    shown = root.dataset.theme;
    root.dataset.theme = "light";
    redraw(true);
  });
  window.addEventListener("afterprint", () => {
    root.dataset.theme = shown ?? root.dataset.theme;
    redraw(false);
  });
}
