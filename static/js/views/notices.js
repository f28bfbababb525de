/** Notices: what is wrong with the server, what that turns off, and the flag to paste. */

import { byId, make, setChildren } from "../dom.js";
import { hostOf } from "../format.js";
import { primaryServer } from "../selectors.js";
import { t } from "../words.js";

const KV_EVENTS_FLAG =
  `--kv-events-config '{"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557",` +
  `"replay_endpoint":"tcp://*:5558","topic":"kv-events"}'`;

const FAULTS = ["down", "not_vllm", "unauthorized"];

/** What the page has to say about the server: [{key, tone, title, text, flag}], worst first. Pure. */
export function noticesFor(server, ui) {
  const notices = [];
  if (ui.mismatch) {
    notices.push({
      key: "mismatch",
      tone: "error",
      title: t("notices.mismatch.title"),
      text: t("notices.mismatch.text", { what: ui.mismatch }),
    });
  }
  if (server === null) return notices;
  if (FAULTS.includes(server.state)) {
    notices.push({
      key: "server",
      tone: "error",
      title: t(`notices.${server.state}`, { host: hostOf(server.id) }),
      text: server.message ?? t("notices.goes-on"),
    });
    return notices;
  }
  if (server.prefix_caching === false) {
    notices.push({
      key: "caching",
      tone: "warn",
      title: t("notices.caching.title"),
      text: t("notices.caching.text"),
      flag: "--enable-prefix-caching",
    });
  }
  const silent = server.streams.filter((stream) => ["off", "silent", "disconnected"].includes(stream.state));
  if (silent.length > 0) {
    const [stream] = silent;
    notices.push({
      key: "events",
      tone: "warn",
      title: t(stream.state === "silent" ? "notices.events.silent" : "notices.events.title"),
      text: stream.message?.replace(`Start vLLM with ${KV_EVENTS_FLAG}`, t("notices.flag-below")) ?? t("notices.events.text"),
      flag: KV_EVENTS_FLAG,
    });
  }
  if (server.usage_details === false) {
    notices.push({
      key: "usage",
      tone: "warn",
      title: t("notices.usage.title"),
      text: t("notices.usage.text"),
      flag: "--enable-prompt-tokens-details",
    });
  }
  if (server.metrics_state === "failed") {
    notices.push({
      key: "metrics",
      tone: "warn",
      title: t("notices.metrics.title"),
      text: server.metrics_message ?? t("notices.metrics.text"),
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
    const copy = make("button", { type: "button" }, t("notices.copy"));
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(flag);
        copy.textContent = t("notices.copied");
      } catch {
        copy.textContent = t("notices.by-hand");
      }
    });
    node.append(make("div", { class: "flag" }, make("code", {}, flag), copy));
  }
  return node;
}
