/** Dims the pictures of blocks while the mirror's history isn't complete, and says so over them. */

import { byId, make, setAttribute, setHidden, setText } from "../../dom.js";
import { pictureOf } from "../../numbers/streams.js";
import { primaryServer } from "../../selectors.js";
import { t } from "../../words.js";

/** The word that pictures are dimmed with: null while they can be trusted, or have nothing to show. Pure. */
function dimming(state) {
  const server = primaryServer(state);
  if (server === null || (server.streams ?? []).length === 0) return null;
  const { coverage, unconfirmed } = pictureOf(server);
  const shown = Object.values(state.caches).some((cache) => cache.server === server.id && cache.blocks.size > 0);
  if (unconfirmed) return "unconfirmed";
  return coverage === "complete" || !shown ? null : coverage;
}

const WORDS = { partial: "streams.dimmed", none: "streams.dimmed-none", unconfirmed: "streams.unconfirmed" };

export function createCoverage() {
  const notes = ["tree-title", "cache-title"].map((id) => {
    const said = make("span");
    const note = make("p", { class: "coverage-note", hidden: true }, said, " ", make("button", { type: "button", class: "link", "data-open-numbers": "events", "data-t": "streams.details" }, t("streams.details")));
    byId(id).closest(".panel-head").append(note);
    return { note, said };
  });
  return (state) => {
    const why = dimming(state);
    setAttribute(document.body, "data-coverage", why);
    for (const { note, said } of notes) {
      setHidden(note, why === null);
      if (why !== null) setText(said, t(WORDS[why]));
    }
    return null;
  };
}
