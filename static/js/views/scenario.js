/** The demo's caption: what happens just now, step n of m, and the way out: any click. */

import { byId, make, setAttribute, setChildren, setHidden, setText } from "../dom.js";
import { language, t } from "../words.js";

export function createScenario({ onStop, onStart }) {
  const root = byId("scenario");
  const steps = byId("scenario-steps");
  const number = byId("scenario-count");
  const caption = byId("scenario-caption");
  const button = byId("scenario-stop");
  let drawn = [];
  let running = false;

  /** The button itself decides by what it says; a click elsewhere only ever stops. */
  button.addEventListener("click", (event) => {
    event.stopPropagation();
    if (running) onStop();
    else onStart();
  });
  document.addEventListener("click", () => {
    if (running) onStop();
  });

  return (state, ui) => {
    const { scenario } = state;
    if (scenario === drawn[0] && ui.paint === drawn[1]) return null;
    drawn = [scenario, ui.paint];
    running = scenario?.running ?? false;
    setHidden(root, scenario === null);
    if (scenario === null) return null;
    setAttribute(root, "data-ended", !running);
    setChildren(
      steps,
      Array.from({ length: scenario.steps }, (_, i) =>
        make("li", { "data-done": i + 1 < scenario.step, "data-now": i + 1 === scenario.step }),
      ),
    );
    setText(number, running ? stepWords(scenario) : "");
    setText(caption, scenario.translations?.[language()] ?? scenario.caption);
    setText(button, t(running ? "scenario.stop" : "scenario.again"));
    return null;
  };
}

const stepWords = ({ step, steps }) => (step > 0 ? t("scenario.step", { step, steps }) : t("scenario.starting"));
