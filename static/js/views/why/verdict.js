/** Under the verdict of "Try it": the way to the microscope and to the cause's explanation, and how the forecast did. */

import { explained, isCause } from "../../causes.js";
import { byId, make, setChildren, setHidden, setText } from "../../dom.js";
import { duration } from "../../format.js";
import { gradeOf } from "../../why/forecast.js";
import { t } from "../../words.js";
import { shownRecord } from "../try.js";
import { causeLink } from "./causes.js";

/** The cause of a verdict and what else holds, as links to their explanations. */
export function verdictLinks(verdict, open) {
  const code = explained(verdict);
  const also = (verdict.others ?? []).filter((other) => other !== code && isCause(other));
  const nodes = [make("span", {}, t("verdict.cause"), " ", causeLink(code, open))];
  if (also.length > 0) nodes.push(make("span", {}, t("verdict.also"), " ", ...also.flatMap((other, i) => (i > 0 ? [", ", causeLink(other, open)] : [causeLink(other, open)]))));
  return nodes;
}

/** How a forecast did, in a line; "" where there was none. Pure. */
export function gradeWords(grade) {
  if (grade === null) return "";
  const { said, came, lower, right, early_ms: early, late_ms: late, ttft_ms: ttft, within } = grade;
  const tokens = t(lower ? "verdict.grade-least" : "verdict.grade", { said, came });
  const time = within === null ? "" : ` ${t("verdict.grade-time", { early: duration(early), late: duration(late), ttft: duration(ttft) })}`;
  return `${right ? "✓" : "✗"} ${tokens}${time}`;
}

/** `book` of why/sent_book.js; `onOpen(id)` opens the microscope; `causes.open(code)` explains a cause. */
export function createVerdictLinks({ book, onOpen, causes }) {
  const why = byId("verdict-why");
  let id = null;
  let drawn = [];
  byId("verdict-open").addEventListener("click", () => onOpen(id));

  return (state, ui) => {
    const record = shownRecord(state, ui.run);
    const inputs = [record, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    id = record?.id ?? null;
    setHidden(why, !record?.verdict);
    if (!record?.verdict) return null;
    setChildren(byId("verdict-causes"), verdictLinks(record.verdict, causes.open));
    setText(byId("verdict-grade"), gradeWords(gradeOf(book.get(id)?.forecast ?? null, record)));
    return null;
  };
}
