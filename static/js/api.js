/** The dashboard's HTTP API and the chat endpoint behind it. All addresses are relative to the page. */

import { SseDecoder, readChatFrame } from "./sse.js";
import { serversWords, t } from "./words.js";

/** The JSON at `path`. Throws an Error with the server's own words where it refuses. */
export async function getJson(path, { signal } = {}) {
  const response = await fetch(path, { headers: { Accept: "application/json" }, signal });
  if (!response.ok) throw new Error(await errorText(response));
  return response.json();
}

/** The JSON that comes for `body`. Throws like getJson, and an AbortError where `signal` stopped it. */
export async function postJson(path, body, { signal } = {}) {
  const headers = { Accept: "application/json", "Content-Type": "application/json", "X-PrefixScope-Origin": "page" };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (!response.ok) throw new Error(await errorText(response));
  return response.json();
}

/** Posts nothing to `path`; what comes back is not read. Throws like getJson. */
export async function post(path) {
  const response = await fetch(path, { method: "POST" });
  if (!response.ok) throw new Error(await errorText(response));
}

/** Posts `text` and hands on the JSON object of each line that comes back. Throws like postJson. */
export async function postLines(path, text, { signal, onLine }) {
  const headers = { "Content-Type": "application/x-ndjson", "X-PrefixScope-Origin": "page" };
  const response = await fetch(path, { method: "POST", headers, body: text, signal });
  if (!response.ok) throw new Error(await errorText(response));
  const utf8 = new TextDecoder();
  const reader = response.body.getReader();
  let rest = "";
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    const lines = (rest + utf8.decode(chunk.value, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line !== "") onLine(JSON.parse(line));
  }
}

/** The text of one block, by request and index, or by hash. */
export function blockPath({ request, index, hash, server, rank }) {
  if (request !== undefined && request !== null) {
    return `api/requests/${encodeURIComponent(request)}/blocks/${index}`;
  }
  const query = new URLSearchParams({ server, rank: String(rank ?? 0) });
  return `api/blocks/${encodeURIComponent(hash)}?${query}`;
}

/**
 * Sends a chat request and reads its stream. onStart(id): the dashboard's id of the request; onText(text): new text of
 * the answer. Throws an Error in words that a person can read; an AbortError where `signal` stopped it.
 */
export async function streamChat({ body, headers, signal, onStart, onText }) {
  const response = await fetch("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
    signal,
  });
  onStart(response.headers.get("X-PrefixScope-Request"));
  if (!response.ok) throw new Error(await errorText(response));
  const decoder = new SseDecoder();
  const utf8 = new TextDecoder();
  const reader = response.body.getReader();
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    for (const { data } of decoder.feed(utf8.decode(chunk.value, { stream: true }))) {
      const frame = readChatFrame(data);
      if (frame.error !== null) throw new Error(frame.error);
      if (frame.text !== "") onText(frame.text);
    }
  }
}

/** An error response in words: our shape, vLLM's, or the status alone. */
async function errorText(response) {
  let error = null;
  try {
    const body = await response.json();
    error = body.error ?? body;
  } catch {
    error = null;
  }
  const message = typeof error === "string" ? error : (error?.message ?? error?.detail);
  // For OpenAI's clients the proxy puts the hint into the message too.
  const hint = error?.hint && !String(message).includes(error.hint) ? ` ${error.hint}` : "";
  return message ? serversWords(`${message}${hint}`, `error.${error.code}`) : t("try.status", { status: String(response.status) });
}
