/** What the doctor found: each finding, the flag to paste, and what it turns on. Asked for while its tab is open. */

import { byId, make, setAttribute, setChildren, setHidden, setText } from "../../dom.js";
import { findingsOf, reportOn, tally } from "../../numbers/doctor.js";
import { primaryServer } from "../../selectors.js";
import { hasWords, language, t } from "../../words.js";
import { copyButton } from "../copy_button.js";

/** {title, text, panels} of a finding: the doctor's own English, the catalogue's words in another language. Pure. */
export function findingWords({ code, status, reason, title, text, panels, params }) {
  const own = { title, text, panels: panels.join(", ") };
  if (language() === "en") return own;
  const found = (...keys) => keys.find(hasWords);
  const textKey = found(`doctor.text.${code}.${reason}`, `doctor.text.${code}.${status}`);
  return {
    title: hasWords(`doctor.name.${code}`) ? t(`doctor.name.${code}`) : own.title,
    text: textKey ? t(textKey, params) : own.text,
    panels: panels.length > 0 && hasWords(`doctor.panels.${code}`) ? t(`doctor.panels.${code}`) : own.panels,
  };
}

/** `ask()` has the report fetched; the answer comes as ui.doctor: {phase, report, error}. */
export function createDoctor({ ask }) {
  const list = byId("doctor-findings");
  const again = byId("doctor-again");
  again.addEventListener("click", ask);
  let drawn = [];
  return (state, ui) => {
    if (ui.numbers !== "doctor" || list.parentElement.clientWidth === 0) return null;
    if (ui.doctor.phase === "idle") ask();
    const inputs = [ui.doctor, primaryServer(state)?.id, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const report = reportOn(ui.doctor.report, primaryServer(state)?.id);
    setText(byId("doctor-said"), saidOf(ui.doctor, report));
    setAttribute(again, "disabled", ui.doctor.phase === "asking");
    setChildren(list, findingsOf(report).map(build));
    setHidden(list, report === null);
    return null;
  };
}

function saidOf({ phase, error }, report) {
  if (error !== null) return t("doctor.failed", { why: error });
  if (report === null || phase === "asking") return t("doctor.looking");
  const { on, missing } = tally(report);
  return missing === 0 ? t("doctor.all-on", { n: on }) : t("doctor.some-missing", { n: missing, on });
}

function build(finding) {
  const words = findingWords(finding);
  const node = make("li", { "data-finding": finding.code, "data-tone": finding.tone },
    make("i", { class: "dot", "aria-hidden": "true" }),
    make("div", {}, make("h4", {}, words.title, " ", make("small", {}, t(`doctor.status.${finding.status}`))), make("p", {}, words.text)));
  if (finding.flag) node.lastChild.append(make("div", { class: "flag" }, make("code", {}, finding.flag), copyButton(() => finding.flag)));
  if (finding.tone !== "good" && words.panels !== "") node.lastChild.append(make("p", { class: "turns-on" }, t("doctor.turns-on", { panels: words.panels })));
  return node;
}
