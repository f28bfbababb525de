/** First-token times in numbers: count, fastest, median, 95th percentile and slowest, warm against cold, and the fit. */

import { byId, make, setText } from "../../dom.js";
import { count, duration } from "../../format.js";
import { firstTokenGroups, fitToDraw, quantile } from "../../numbers/series.js";
import { primaryServer } from "../../selectors.js";
import { language, t } from "../../words.js";

const ROWS = { fastest: 0, median: 0.5, p95: 0.95, slowest: 1 };
const GROUPS = ["warm", "cold"];

export function createTimes() {
  const table = byId("times-table");
  let drawn = [];
  return (state, ui) => {
    if (ui.numbers !== "ttft") return null;
    const inputs = [firstTokenGroups(state), ui.fit, primaryServer(state)?.embedded, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const [groups, fit, embedded] = inputs;
    table.replaceChildren(...buildTable(groups));
    setText(byId("times-fit"), fitWords(fit));
    setText(byId("times-clock"), t(embedded ? "times.clock-modelled" : "times.clock"));
    return null;
  };
}

/** The line that was fitted, in words, or why there is none. Pure. */
export function fitWords(answer) {
  const fit = fitToDraw(answer);
  if (fit === null) {
    if (!answer?.missing) return "";
    return language() === "en" ? answer.missing : t("times.no-fit");
  }
  const perToken = (ms) => t("unit.ms", { value: ms.toFixed(3) });
  return t("times.fit", {
    requests: t("unit.requests", { n: fit.requests }), fixed: duration(fit.fixed_ms),
    slope: perToken(fit.token_ms), low: perToken(fit.token_low_ms), high: perToken(fit.token_high_ms),
  });
}

function buildTable(groups) {
  const cells = (write) => GROUPS.map((group) => make("td", { "data-group": group }, write(groups[group].map(({ ttft_ms }) => ttft_ms))));
  const row = (name, write) => make("tr", {}, make("th", { scope: "row" }, t(`times.${name}`)), ...cells(write));
  const head = make("thead", {}, make("tr", {}, make("td"), ...GROUPS.map((group) => make("th", { scope: "col", "data-group": group }, t(`times.${group}`)))));
  const timed = Object.entries(ROWS).map(([name, q]) => row(name, (times) => duration(quantile(times, q))));
  return [head, make("tbody", {}, row("requests", (times) => count(times.length)), ...timed)];
}
