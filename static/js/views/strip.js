/** The strip: what server this is, what it can tell, and whether the page hears it. */

import { choicesOf } from "../chosen_server.js";
import { byId, make, setAttribute, setChildren, setText } from "../dom.js";
import { hostOf } from "../format.js";
import { coverageOf } from "../numbers/streams.js";
import { primaryServer } from "../selectors.js";
import { LANGUAGES, language, t } from "../words.js";

/** How the page marks a server's state, and its own link to the dashboard. */
const STATE_TONES = { up: "good", down: "bad", not_vllm: "bad", unauthorized: "bad", unknown: "wait" };
const LINK_TONES = { live: "good", connecting: "wait", lost: "bad" };

/** {tone, text} for the event streams of a server, the worst of them first. */
export function streamSummary(server, gaps) {
  const streams = server.streams ?? [];
  if (streams.length === 0) return { tone: "wait", text: t("strip.events.none") };
  const off = streams.find((stream) => stream.state === "off" || stream.state === "disconnected");
  if (off) return { tone: "bad", text: t(`strip.events.${off.state}`) };
  const silent = streams.find((stream) => stream.state === "silent");
  if (silent) return { tone: "bad", text: t("strip.events.silent") };
  if (streams.some((stream) => stream.state === "connecting")) return { tone: "wait", text: t("strip.events.connecting") };
  const lost = streams.reduce((sum, stream) => sum + stream.lost, 0);
  const missed = streams.reduce((sum, stream) => sum + stream.gaps, 0);
  if (gaps > 0) return { tone: "wait", text: t("strip.events.recovering") };
  if (lost > 0) return { tone: "wait", text: t("strip.events.lost", { n: lost }) };
  if (missed > 0) return { tone: "good", text: t("strip.events.mended", { gaps: t("unit.gaps", { n: missed }) }) };
  if (coverageOf(server) !== "complete") return { tone: "wait", text: t("strip.events.partial") };
  return { tone: "good", text: t("strip.events.live") };
}

export function createStrip({ onTheme, onLanguage }) {
  const chips = byId("chips");
  const link = byId("link-state");
  const linkText = link.lastElementChild;
  const made = new Map();
  byId("theme-switch").addEventListener("click", onTheme);
  const other = byId("language-switch");
  other.addEventListener("click", onLanguage);

  function chip(key, { tone = null, strong = "", text = "", title = null, opens = null }) {
    let node = made.get(key);
    if (!node) {
      node = make("li", { class: "chip" }, make("i", { class: "dot", "aria-hidden": "true" }), chipLabel(opens));
      made.set(key, node);
    }
    const [dot, label] = node.children;
    dot.hidden = tone === null || tone === "badge";
    setAttribute(node, "data-tone", tone);
    setAttribute(node, "data-chip", key);
    setAttribute(node, "title", title);
    setText(label.firstChild, strong);
    const rest = strong && text ? ` ${text}` : text;
    if (label.lastChild.data !== rest) label.lastChild.data = rest;
    return node;
  }

  let drawn = [];
  return (state, ui) => {
    const server = primaryServer(state);
    const inputs = [server, state.gaps, ui.connection, ui.mismatch, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const [, { lang, short }] = Object.entries(LANGUAGES).find(([tag]) => tag !== language());
    setText(other, short);
    setAttribute(other, "lang", lang);
    setAttribute(link, "data-tone", LINK_TONES[ui.connection]);
    setText(linkText, t(`strip.${ui.connection}`));
    if (server === null) return null;
    const known = Object.hasOwn(STATE_TONES, server.state) ? server.state : "unknown";
    const stateWord = t(`strip.state.${known}`);
    const nodes = [
      chip("server", {
        tone: STATE_TONES[known],
        strong: versionWords(server) ?? stateWord,
        // The embedded engine listens on a port of its own that is nobody's concern; of several the list says it.
        text: server.embedded || choicesOf(state).length > 1 ? "" : hostOf(server.id),
        title: t("strip.server-title", { id: server.id, state: stateWord }),
      }),
    ];
    if (server.models.length > 0) nodes.push(chip("model", { text: server.models[0], title: server.models.join(", ") }));
    const { block_size: size, num_gpu_blocks: blocks } = server;
    if (size !== null || blocks !== null) nodes.push(chip("pool", { text: poolWords(size, blocks), title: size === null ? null : t("strip.block-size", { n: size }) }));
    const stream = streamSummary(server, Object.keys(state.gaps).length);
    nodes.push(chip("events", { tone: stream.tone, text: stream.text, title: streamTitle(server), opens: "events" }));
    if (server.embedded) {
      nodes.push(
        chip("embedded", {
          tone: "badge",
          text: t("strip.embedded"),
          title: server.profile ? t("strip.profile", { name: server.profile }) : null,
        }),
      );
    }
    setChildren(chips, nodes);
    return null;
  };
}

/** What a chip says; where it `opens` a tab of the numbers, it is a button. */
function chipLabel(opens) {
  const inside = [make("b"), document.createTextNode("")];
  return opens === null ? make("span", {}, ...inside) : make("button", { type: "button", class: "chip-open", "data-open-numbers": opens }, ...inside);
}

function versionWords({ version, embedded }) {
  if (!version) return null;
  return embedded ? t("strip.as-vllm", { version }) : `vLLM ${version}`;
}

function poolWords(size, blocks) {
  if (size === null) return t("unit.blocks", { n: blocks });
  return blocks === null ? t("strip.block-size", { n: size }) : t("strip.pool", { blocks, n: size });
}

function streamTitle(server) {
  const lines = (server.streams ?? []).map(({ rank, state, coverage, batches, lost, malformed }) =>
    t("strip.events.title", { rank, state, coverage, batches, lost, malformed }),
  );
  return lines.join("\n");
}
