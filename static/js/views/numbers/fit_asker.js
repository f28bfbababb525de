/** Asks for the fit of first-token times while a chart shows it: after an answer, and not too often. */

const LEAST_MS = 5000;

/** Whether a chart against computed tokens is on the page. Pure. */
export const showsFit = (ui) => ui.numbers === "ttft" || ui.ttftBy === "computed";

export function createFitAsker({ ask }) {
  let askedFor = null;
  let askedAt = -Infinity;
  return (state, ui, now) => {
    if (!showsFit(ui) || state.requests === askedFor) return null;
    const wait = askedAt + LEAST_MS - now;
    if (wait > 0) return wait;
    askedFor = state.requests;
    askedAt = now;
    ask();
    return null;
  };
}
