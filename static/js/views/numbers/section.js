/** The section of numbers: its tabs, of which one is open. */

import { byId, setAttribute, setHidden } from "../../dom.js";
import { agreement } from "../../numbers/hit_rates.js";
import { forecastScore } from "../../numbers/forecasts.js";
import { streamTone } from "../../numbers/streams.js";
import { primaryServer } from "../../selectors.js";

export const TABS = ["rates", "ttft", "pool", "events", "doctor"];
const WORST = ["bad", "wait", "good"];

/** The tone of a tab's dot; null where it has nothing to warn of. */
function tabTone(tab, state) {
  if (tab === "rates") return agreement(state) === "differ" || forecastScore(state).banner ? "wait" : null;
  if (tab !== "events") return null;
  const tones = (primaryServer(state)?.streams ?? []).map(streamTone);
  return WORST.find((tone) => tones.includes(tone)) ?? null;
}

export function createNumbersSection({ onTab }) {
  const buttons = TABS.map((tab) => byId(`tab-${tab}`));
  const panels = TABS.map((tab) => byId(`numbers-${tab}`));
  buttons.forEach((button, i) => button.addEventListener("click", () => onTab(TABS[i])));
  byId("numbers-tabs").addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    const to = (next + TABS.length) % TABS.length;
    onTab(TABS[to]);
    buttons[to].focus();
  });
  // Other places of the page open a tab by naming it.
  document.addEventListener("click", (event) => {
    const tab = event.target.closest?.("[data-open-numbers]")?.dataset.openNumbers;
    if (tab === undefined) return;
    onTab(tab);
    byId("numbers").scrollIntoView({ block: "start" });
    buttons[TABS.indexOf(tab)].focus({ preventScroll: true });
  });

  let drawn = [];
  return (state, ui) => {
    const inputs = [ui.numbers, state.rates, state.differences, state.servers];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    TABS.forEach((tab, i) => {
      const open = tab === ui.numbers;
      setAttribute(buttons[i], "aria-selected", String(open));
      setAttribute(buttons[i], "tabindex", open ? "0" : "-1");
      setHidden(panels[i], !open);
      const tone = tabTone(tab, state);
      setAttribute(buttons[i], "data-tone", tone);
      setHidden(buttons[i].firstElementChild, tone === null);
    });
    return null;
  };
}
