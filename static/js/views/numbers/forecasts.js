/** The running score of forecasts, and a mark for each of the latest outcomes. */

import { byId, make, setChildren, setText } from "../../dom.js";
import { percent, requestName } from "../../format.js";
import { forecastRun, forecastScore } from "../../numbers/forecasts.js";
import { t } from "../../words.js";

/** {score, said, note} in words. Pure. */
function scoreWords(score) {
  if (score.reason !== null) return { score: "—", said: t(`reason.${score.reason}`), note: score.lowerBound ? t("forecasts.lower-bound") : "" };
  const notes = [
    score.lowerBound ? t("forecasts.lower-bound") : null,
    score.wrongInARow > 0 ? t("forecasts.wrong", { n: score.wrongInARow }) : null,
    score.drift ? t(score.drift > 0 ? "forecasts.drift-more" : "forecasts.drift-fewer", { n: Math.abs(score.drift) }) : null,
    score.dropped > 0 ? t("forecasts.dropped", { n: score.dropped }) : null,
    score.unit === null ? null : t("forecasts.unit", { n: score.unit }),
  ];
  return {
    score: t("forecasts.score", { right: score.right, scored: score.scored }),
    said: t("forecasts.right", { share: percent(score.ratio) }),
    note: notes.filter((note) => note !== null).join(" "),
  };
}

export function createForecasts() {
  const run = byId("forecast-run");
  let drawn = [];
  let listed = "";
  return (state, ui) => {
    if (ui.numbers !== "rates") return null;
    const inputs = [state.servers, state.requests, state.requestOrder, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const words = scoreWords(forecastScore(state));
    setText(byId("forecast-score"), words.score);
    setText(byId("forecast-score-said"), words.said);
    setText(byId("forecast-note"), words.note);
    const marks = forecastRun(state).map(({ id, predicted, cached, verdict }) => ({
      verdict, said: t(`forecasts.mark.${verdict}`, { name: requestName(id), predicted, cached }),
    }));
    if (JSON.stringify(marks) !== listed) {
      listed = JSON.stringify(marks);
      setChildren(run, marks.map(({ verdict, said }) => make("li", { "data-verdict": verdict, title: said }, make("span", { class: "unseen" }, said))));
    }
    return null;
  };
}
