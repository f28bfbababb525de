/** The demo's caption: what happens just now, step n of m, and the way out: any click. */

import { byId, make, setAttribute, setChildren, setHidden, setText } from "../dom.js";

export function createScenario({ onStop, onStart }) {
  const root = byId("scenario");
  const steps = byId("scenario-steps");
  const number = byId("scenario-count");
  const caption = byId("scenario-caption");
  const button = byId("scenario-stop");
  let drawn;
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

  return (state) => {
    const { scenario } = state;
    if (scenario === drawn) return null;
    drawn = scenario;
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
    const step = scenario.step > 0 ? `${scenario.step} of ${scenario.steps}` : "starting";
    setText(number, running ? `Demo, step ${step}` : "");
    setText(caption, scenario.caption);
    setText(button, running ? "Stop and try it yourself" : "Play the demo again");
    return null;
  };
}
