/** The event streams in full: coverage, ranks, KV cache groups, and each rank's health. */

import { byId, make, setAttribute, setChildren, setHidden, setText } from "../../dom.js";
import { UNKNOWN, age, clock, count, rateOf } from "../../format.js";
import { diagnosisOf, groupsOf, pictureOf, ranksOf, streamFields, streamTone } from "../../numbers/streams.js";
import { primaryServer } from "../../selectors.js";
import { hasWords, language, t } from "../../words.js";
import { createFacts } from "./facts.js";

/** While a panel shows ages it is drawn anew so often. */
const TICK_MS = 1000;

/** "partial since 12:04:11", in words. Pure. */
function pictureWords({ coverage, since_ms, unconfirmed }) {
  if (unconfirmed) return t("streams.unconfirmed");
  return since_ms === null ? t(`streams.coverage.${coverage}`) : t(`streams.coverage-since.${coverage}`, { time: clock(since_ms) });
}

/** What is wrong with a stream, in the page's language where it has the words. Pure. */
export function diagnosisWords(stream) {
  const found = diagnosisOf(stream);
  if (found === null) return "";
  const key = `streams.diagnosis.${found.code}`;
  return language() !== "en" && hasWords(key) ? t(key, found.params) : found.text;
}

export function createStreams({ now = () => Date.now() } = {}) {
  const panels = new Map();
  let listed = "";
  return (state, ui) => {
    if (ui.numbers !== "events" || byId("numbers-events").clientWidth === 0) return null;
    const server = primaryServer(state);
    const picture = pictureOf(server);
    setText(byId("picture-state"), pictureWords(picture));
    setAttribute(byId("picture-state"), "data-coverage", picture.coverage);
    const ranks = ranksOf(server);
    setText(byId("picture-ranks"), t(ranks.expected === null ? "streams.ranks-unknown" : "streams.ranks", ranks));
    const groups = groupsOf(server);
    const signature = JSON.stringify([groups, ui.paint]);
    if (signature !== listed) drawGroups(byId("groups"), groups);
    listed = signature;
    setChildren(byId("streams"), (server?.streams ?? []).map((stream) => {
      if (!panels.has(stream.rank)) panels.set(stream.rank, createPanel(stream.rank));
      return panels.get(stream.rank)(stream, now());
    }));
    return TICK_MS;
  };
}

/** One rank's panel: draw(stream, now_ms) answers its element. */
function createPanel(rank) {
  const title = make("h3", { id: `stream-${rank}` });
  const state = make("p", { class: "stream-state" }, make("i", { class: "dot", "aria-hidden": "true" }), make("span"));
  const trouble = make("p", { class: "trouble" });
  const groups = ["flow", "history", "faults"].map((group) => ({ group, name: make("h4"), list: make("dl", { class: "facts" }) }));
  const draws = groups.map(({ list }) => createFacts(list));
  const node = make("section", { class: "panel stream", "aria-labelledby": title.id, "data-rank": rank }, make("header", { class: "panel-head" }, title), state, trouble,
    make("div", { class: "stream-groups" }, ...groups.map(({ name, list }) => make("div", {}, name, list))));
  return (stream, now_ms) => {
    setText(title, t("streams.rank", { rank, endpoint: stream.endpoint ?? UNKNOWN }));
    setAttribute(state, "data-tone", streamTone(stream));
    setText(state.lastChild, t(`streams.state.${stream.state}`));
    setText(trouble, diagnosisWords(stream));
    setHidden(trouble, trouble.textContent === "");
    streamFields(stream).forEach(({ group, fields }, i) => {
      setText(groups[i].name, t(`streams.group.${group}`));
      draws[i](fields.map((field) => ({ key: field.field, name: t(`streams.${field.field}`), value: written(field, now_ms), tone: field.fault ? "wait" : null })));
    });
    return node;
  };
}

function written({ field, kind, value }, now_ms) {
  if (value === null) return UNKNOWN;
  if (kind === "age") return age(value, now_ms);
  if (kind === "rate") return rateOf(value);
  return kind === "word" ? t(`streams.${field}.${value}`) : count(value);
}

function drawGroups(place, groups) {
  const head = ["rank", "group", "kind", "medium", "block_size", "blocks", "copies", "walked"];
  setHidden(place, groups.length === 0);
  place.firstElementChild.replaceChildren(
    make("caption", {}, t("streams.groups")),
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, t(`streams.column.${name}`))))),
    make("tbody", {}, ...groups.map((group) => make("tr", {}, ...head.map((name) => make("td", {}, groupCell(name, group[name])))))),
  );
}

function groupCell(name, value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (name === "walked") return t(value ? "streams.walked.yes" : "streams.walked.no");
  return typeof value === "number" ? count(value) : String(value);
}
