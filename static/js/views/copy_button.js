/** A button that puts a text on the clipboard, and says whether it did. */

import { make } from "../dom.js";
import { t } from "../words.js";

/** `text()` is asked for when the button is pressed. */
export function copyButton(text) {
  const button = make("button", { type: "button", class: "copy" }, t("notices.copy"));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = t("notices.copied");
    } catch {
      button.textContent = t("notices.by-hand");
    }
  });
  return button;
}
