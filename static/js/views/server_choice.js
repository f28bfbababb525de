/** Which of several servers the page shows: a list in the strip, there from the second server on. */

import { choicesOf } from "../chosen_server.js";
import { byId, make, setChildren, setHidden } from "../dom.js";
import { hostOf } from "../format.js";
import { hasWords, t } from "../words.js";

/** What the list calls a server: its host, and its state where that isn't "up". Pure. */
export function optionWords({ id, state }) {
  return state === "up" ? hostOf(id) : t("strip.option", { host: hostOf(id), state: t(hasWords(`strip.state.${state}`) ? `strip.state.${state}` : "strip.state.unknown") });
}

export function createServerChoice({ onChoose }) {
  const list = byId("server-choice");
  list.addEventListener("change", () => onChoose(list.value));
  let drawn = "";
  return (state) => {
    const servers = choicesOf(state).map((id) => state.servers[id]);
    const options = servers.map((server) => [server.id, optionWords(server)]);
    const now = JSON.stringify(options);
    if (now !== drawn) setChildren(list, options.map(([value, words]) => make("option", { value }, words)));
    drawn = now;
    setHidden(list, options.length < 2);
    const [shown] = state.serverOrder;
    if (shown !== undefined && list.value !== shown) list.value = shown;
    return null;
  };
}
