/** The strip: what server this is, what it can tell, and whether the page hears it. */

import { byId, make, setAttribute, setChildren, setText } from "../dom.js";
import { count, hostOf, plural } from "../format.js";
import { primaryServer } from "../selectors.js";

const STATE_WORDS = {
  up: ["good", "up"],
  down: ["bad", "not reachable"],
  not_vllm: ["bad", "not a vLLM server"],
  unauthorized: ["bad", "key refused"],
  unknown: ["wait", "not reached yet"],
};

/** {tone, text} for the event streams of a server, the worst of them first. */
export function streamSummary(server, gaps) {
  const streams = server.streams ?? [];
  if (streams.length === 0) return { tone: "wait", text: "no KV events yet" };
  const off = streams.find((stream) => stream.state === "off" || stream.state === "disconnected");
  if (off) return { tone: "bad", text: off.state === "off" ? "KV events off" : "KV events disconnected" };
  const silent = streams.find((stream) => stream.state === "silent");
  if (silent) return { tone: "bad", text: "KV events silent" };
  if (streams.some((stream) => stream.state === "connecting")) return { tone: "wait", text: "KV events connecting" };
  const lost = streams.reduce((sum, stream) => sum + stream.lost, 0);
  const missed = streams.reduce((sum, stream) => sum + stream.gaps, 0);
  if (gaps > 0) return { tone: "wait", text: "events: recovering a gap" };
  if (lost > 0) return { tone: "wait", text: `events live · ${count(lost)} lost` };
  return { tone: "good", text: `events live · ${plural(missed, "gap")}` };
}

export function createStrip({ onTheme }) {
  const chips = byId("chips");
  const link = byId("link-state");
  const linkText = link.lastElementChild;
  const made = new Map();
  byId("theme-switch").addEventListener("click", onTheme);

  function chip(key, { tone = null, strong = "", text = "", title = null }) {
    let node = made.get(key);
    if (!node) {
      node = make("li", { class: "chip" }, make("i", { class: "dot", "aria-hidden": "true" }), make("span", {}, make("b"), document.createTextNode("")));
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
    const inputs = [server, state.gaps, ui.connection, ui.mismatch];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const words = { live: ["good", "live"], connecting: ["wait", "connecting"], lost: ["bad", "connection lost, trying again"] };
    const [tone, text] = words[ui.connection];
    setAttribute(link, "data-tone", tone);
    setText(linkText, text);
    if (server === null) return null;
    const [stateTone, stateWord] = STATE_WORDS[server.state] ?? STATE_WORDS.unknown;
    const nodes = [
      chip("server", {
        tone: stateTone,
        strong: server.version ? `${server.embedded ? "as vLLM" : "vLLM"} ${server.version}` : stateWord,
        text: hostOf(server.id),
        title: `${server.id}: ${stateWord}`,
      }),
    ];
    if (server.models.length > 0) nodes.push(chip("model", { text: server.models[0], title: server.models.join(", ") }));
    const size = server.block_size === null ? "" : `blocks of ${plural(server.block_size, "token")}`;
    if (server.num_gpu_blocks !== null) nodes.push(chip("pool", { text: `${count(server.num_gpu_blocks)} ${size || "blocks"}` }));
    else if (size) nodes.push(chip("pool", { text: size }));
    const stream = streamSummary(server, Object.keys(state.gaps).length);
    nodes.push(chip("events", { tone: stream.tone, text: stream.text, title: streamTitle(server) }));
    if (server.embedded) {
      nodes.push(
        chip("embedded", {
          tone: "badge",
          text: "embedded engine: exact block accounting, modelled timing",
          title: server.profile ? `Timing profile ${server.profile}` : null,
        }),
      );
    }
    setChildren(chips, nodes);
    return null;
  };
}

function streamTitle(server) {
  return (server.streams ?? [])
    .map((s) => `rank ${s.rank}: ${s.state}, picture ${s.coverage}, ${count(s.batches)} batches, ${count(s.lost)} lost, ${count(s.malformed)} malformed`)
    .join("\n");
}
