/** Notices: what is wrong with the server, what that turns off, and the flag to paste. */

import { byId, make, setChildren } from "../dom.js";
import { hostOf } from "../format.js";
import { primaryServer } from "../selectors.js";

const KV_EVENTS_FLAG =
  `--kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",` +
  `"replay_endpoint":"tcp://*:5558","topic":"kv-events"}'`;

const TITLES = {
  down: "doesn't answer",
  not_vllm: "isn't a vLLM server",
  unauthorized: "refuses the key",
};

/** What the page has to say about the server: [{key, tone, title, text, flag}], worst first. Pure. */
export function noticesFor(server, ui) {
  const notices = [];
  if (ui.mismatch) {
    notices.push({ key: "mismatch", tone: "error", title: "This page is older than the dashboard", text: `${ui.mismatch} Reload the page.` });
  }
  if (server === null) return notices;
  if (TITLES[server.state]) {
    notices.push({
      key: "server",
      tone: "error",
      title: `${hostOf(server.id)} ${TITLES[server.state]}`,
      text: server.message ?? "The page goes on by itself as soon as it does.",
    });
    return notices;
  }
  if (server.prefix_caching === false) {
    notices.push({
      key: "caching",
      tone: "warn",
      title: "Prefix caching is off on this server",
      text: "Every prompt is computed in full. Start vLLM with",
      flag: "--enable-prefix-caching",
    });
  }
  const silent = server.streams.filter((stream) => ["off", "silent", "disconnected"].includes(stream.state));
  if (silent.length > 0) {
    const [stream] = silent;
    notices.push({
      key: "events",
      tone: "warn",
      title: stream.state === "silent" ? "No KV events, although prompts flow" : "No KV events from this server",
      text: stream.message?.replace(`Start vLLM with ${KV_EVENTS_FLAG}`, "Start vLLM with the flag below") ?? "Without them there are no block tables, no cache picture and no forecast; figures from counters and usage stay right. Start vLLM with",
      flag: KV_EVENTS_FLAG,
    });
  }
  if (server.usage_details === false) {
    notices.push({
      key: "usage",
      tone: "warn",
      title: "Responses don't say how many tokens were cached",
      text: "Without it the tokens reused by each request are inferred or unknown. Start vLLM with",
      flag: "--enable-prompt-tokens-details",
    });
  }
  if (server.metrics_state === "failed") {
    notices.push({
      key: "metrics",
      tone: "warn",
      title: "The server's metrics can't be read",
      text: server.metrics_message ?? "Hit rates and pool usage are unknown until they can.",
    });
  }
  return notices;
}

export function createNotices() {
  const root = byId("notices");
  let drawn = "";
  return (state, ui) => {
    const notices = noticesFor(primaryServer(state), ui);
    const signature = JSON.stringify(notices);
    if (signature === drawn) return null;
    drawn = signature;
    setChildren(root, notices.map(build));
    return null;
  };
}

function build({ key, tone, title, text, flag }) {
  const node = make("article", { class: `notice notice-${tone}`, "data-notice": key }, make("h3", {}, title), make("p", {}, text));
  if (flag) {
    const copy = make("button", { type: "button" }, "Copy");
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(flag);
        copy.textContent = "Copied";
      } catch {
        copy.textContent = "Select it by hand";
      }
    });
    node.append(make("div", { class: "flag" }, make("code", {}, flag), copy));
  }
  return node;
}
