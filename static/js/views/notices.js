/** Notices: what is wrong with the server, what that turns off, and the flag to paste. */

import { byId, make, setChildren } from "../dom.js";
import { hostOf } from "../format.js";
import { primaryServer } from "../selectors.js";
import { hasWords, language, serversWords, t } from "../words.js";
import { copyButton } from "./copy_button.js";
import { diagnosisWords } from "./numbers/streams.js";

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
      text: server.message ? serversWords(server.message, `notices.fault.${server.state}`) : t("notices.goes-on"),
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
      text: diagnosisWords(stream).replace(`Start vLLM with ${KV_EVENTS_FLAG}`, t("notices.flag-below")) || t("notices.events.text"),
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
      text: serversWords(server.metrics_message, "notices.metrics.text"),
    });
  }
  return [...notices, ...foundIn(server)];
}

/** What the dashboard found in the server's own figures. */
function foundIn(server) {
  const found = (server.notices ?? []).map(({ code, text, params }) => ({
    key: code,
    tone: "info",
    title: hasWords(`notices.found.${code}`) ? t(`notices.found.${code}`) : t("notices.found.other"),
    text: language() !== "en" && hasWords(`notices.found-text.${code}`) ? t(`notices.found-text.${code}`, params) : text,
  }));
  const { forecasts } = server;
  if (forecasts?.banner) {
    found.unshift({ key: "forecasts", tone: "warn", title: t("notices.forecasts.title", { n: forecasts.wrong_in_a_row }), text: t("notices.forecasts.text") });
  }
  if (server.asleep) found.unshift({ key: "asleep", tone: "info", title: t("notices.asleep.title"), text: t("notices.asleep.text") });
  return found;
}

export function createNotices() {
  const root = byId("notices");
  let drawn = "";
  return (state, ui) => {
    const notices = noticesFor(primaryServer(state), ui);
    const signature = JSON.stringify([language(), notices]);
    if (signature === drawn) return null;
    drawn = signature;
    setChildren(root, notices.map(build));
    return null;
  };
}

function build({ key, tone, title, text, flag }) {
  const node = make("article", { class: `notice notice-${tone}`, "data-notice": key }, make("h3", {}, title), make("p", {}, text));
  if (flag) node.append(make("div", { class: "flag" }, make("code", {}, flag), copyButton(() => flag)));
  return node;
}
