/** Asks for the fit of first-token times while a chart shows it: after an answer, and not too often. */

const LEAST_MS = 5000;

/** Whether a chart against computed tokens is on the page. Pure. */
const showsFit = (ui) => ui.numbers === "ttft" || ui.ttftBy === "computed";

/** ask(server): has it fetched; the server is one's id, or undefined before there is any. */
export function createFitAsker({ ask }) {
  let askedFor = null;
  let askedOf = null;
  let askedAt = -Infinity;
  return (state, ui, now) => {
    const [server] = state.serverOrder;
    if (!showsFit(ui) || (state.requests === askedFor && server === askedOf)) return null;
    const wait = server === askedOf ? askedAt + LEAST_MS - now : 0;
    if (wait > 0) return wait;
    askedFor = state.requests;
    askedOf = server;
    askedAt = now;
    ask(server);
    return null;
  };
}
