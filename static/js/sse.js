/**
 * Server-sent events, incrementally: feed text in any chunking, take whole events. Pure.
 * Follows the WHATWG rules that a chat stream can meet: CR, LF and CRLF, comments, several data lines, a leading BOM.
 */

export class SseDecoder {
  #buffer = "";
  #data = [];
  #event = "";
  #started = false;

  /** The events that `text` completes, as {event, data}; `event` is "message" where none is named. */
  feed(text) {
    this.#buffer += text;
    if (!this.#started && this.#buffer.length > 0) {
      this.#buffer = this.#buffer.replace(/^\uFEFF/, "");
      this.#started = true;
    }
    const events = [];
    for (let line = this.#takeLine(); line !== null; line = this.#takeLine()) {
      const event = this.#accept(line);
      if (event) events.push(event);
    }
    return events;
  }

  /** A CR at the very end of what came may be half of a CRLF, so it waits for the next character. */
  #takeLine() {
    const end = this.#buffer.search(/[\r\n]/);
    if (end < 0) return null;
    const isReturn = this.#buffer[end] === "\r";
    if (isReturn && end === this.#buffer.length - 1) return null;
    const line = this.#buffer.slice(0, end);
    this.#buffer = this.#buffer.slice(end + (isReturn && this.#buffer[end + 1] === "\n" ? 2 : 1));
    return line;
  }

  #accept(line) {
    if (line === "") {
      const event = this.#data.length > 0 ? { event: this.#event || "message", data: this.#data.join("\n") } : null;
      this.#data = [];
      this.#event = "";
      return event;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    if (field === "event") this.#event = value;
    return null;
  }
}

/**
 * What one chat-completion frame says: {text, error, done}. `text` is the answer's new text ("" where it brings none).
 * A frame that isn't JSON counts as one without text: the stream goes on.
 */
export function readChatFrame(data) {
  if (data === "[DONE]") return { text: "", error: null, done: true };
  let frame;
  try {
    frame = JSON.parse(data);
  } catch {
    return { text: "", error: null, done: false };
  }
  if (frame?.error) {
    const error = typeof frame.error === "string" ? frame.error : frame.error.message;
    return { text: "", error: error || "The server sent an error.", done: false };
  }
  const delta = frame?.choices?.[0]?.delta;
  const text = delta?.content ?? delta?.reasoning_content ?? delta?.reasoning ?? "";
  return { text: typeof text === "string" ? text : "", error: null, done: false };
}
