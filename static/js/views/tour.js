/** The tour's bar: where it is, its caption, its one number, and the presenter's buttons. */

import { byId, make, setAttribute, setChildren, setHidden, setText } from "../dom.js";
import { count, duration } from "../format.js";
import { STEPS, numberOf } from "../tour.js";
import { t } from "../words.js";

/** {value, label} of a step's number, in words. Pure. */
export function numberWords({ kind, value, before = null, of = null }) {
  if (kind === "tokens") return { value: count(value), label: t("tour.tokens") };
  if (kind === "blocks") return { value: t("lanes.count", { reused: value, blocks: of }), label: t("tour.blocks") };
  return { value: duration(value), label: before === null ? t("tour.ttft") : t("tour.ttft-before", { before: duration(before) }) };
}

export function createTourBar({ tour }) {
  const root = byId("tour");
  const steps = byId("tour-steps");
  const next = byId("tour-next");
  const back = byId("tour-back");
  let drawn = [];

  byId("tour-start").addEventListener("click", tour.next);
  next.addEventListener("click", tour.next);
  back.addEventListener("click", tour.back);
  byId("tour-reset").addEventListener("click", tour.reset);
  byId("tour-close").addEventListener("click", tour.close);

  return (state, ui) => {
    const now = ui.tour;
    const inputs = [now, state.requests, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    setHidden(root, !now.open);
    document.body.toggleAttribute("data-tour", now.open);
    if (!now.open) return null;
    const step = STEPS[now.step];
    setChildren(steps, STEPS.map((_, i) => make("li", { "data-done": i < now.step, "data-now": i === now.step })));
    setText(byId("tour-count"), t("tour.step", { step: now.step + 1, steps: STEPS.length, name: t(`tour.${step}.name`) }));
    setText(byId("tour-caption"), now.phase === "failed" ? t("tour.failed", { error: now.error }) : captionOf(step, now));
    const words = numberWords(numberOf(step, now.ids, (id) => state.requests[id]?.record ?? null, now));
    setText(byId("tour-number"), words.value);
    setText(byId("tour-label"), words.label);
    const running = now.phase === "running";
    setAttribute(root, "data-running", running);
    setAttribute(root, "data-step", step);
    setAttribute(back, "disabled", now.step === 0 || running);
    setAttribute(next, "disabled", running || (now.step === STEPS.length - 1 && now.phase !== "failed"));
    return null;
  };
}

const captionOf = (step, { real }) => t(step === "out" && !real ? "tour.out.salted" : `tour.${step}.caption`);
