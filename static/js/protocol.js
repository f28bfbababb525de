/**
 * The envelope of `WS /live`, checked: EVENTS.md describes it. Pure.
 * A message that can't be used throws a ProtocolError; whether that is fatal is the caller's decision.
 */

export const PROTOCOL_VERSION = 1;

/** The fields of `data` without which an event can't be applied. */
const REQUIRED = {
  hello: ["instance"],
  snapshot: ["servers", "requests", "blocks", "rates", "metrics"],
  "request.started": ["record"],
  "request.first_token": ["record"],
  "request.joined": ["record", "block_table"],
  "request.finished": ["record"],
  "request.failed": ["record"],
  "blocks.stored": ["hash", "copies"],
  "blocks.reused": ["hash"],
  "blocks.removed": ["hash", "copies"],
  "blocks.cleared": ["reason"],
  "metrics.sampled": ["point"],
  "hit_rate.updated": ["rates"],
  "server.changed": ["server"],
  "stream.gapped": ["first_seq", "last_seq"],
  "stream.resynced": ["last_seq"],
  "scenario.advanced": ["scenario"],
};

export const EVENT_TYPES = Object.keys(REQUIRED);

export class ProtocolError extends Error {
  /** `code`: "malformed", "version" or "unknown_type". */
  constructor(code, message) {
    super(message);
    this.name = "ProtocolError";
    this.code = code;
  }
}

/** The message as an event, or null for a heartbeat. */
export function decodeMessage(text) {
  let message;
  try {
    message = JSON.parse(text);
  } catch {
    throw new ProtocolError("malformed", "a message that isn't JSON");
  }
  if (message === null || typeof message !== "object") throw new ProtocolError("malformed", "a message without fields");
  if (message.type === "heartbeat") return null;
  return checkEvent(message);
}

/** The event itself, if it can be used. */
function checkEvent(event) {
  const { v, seq, at_ms, type, data } = event;
  if (v !== PROTOCOL_VERSION) {
    throw new ProtocolError("version", `protocol version ${v}; this page reads ${PROTOCOL_VERSION}`);
  }
  if (!Number.isSafeInteger(seq) || typeof at_ms !== "number" || data === null || typeof data !== "object") {
    throw new ProtocolError("malformed", `${type}: seq, at_ms or data is missing`);
  }
  if (!Object.hasOwn(REQUIRED, type)) throw new ProtocolError("unknown_type", `an event of unknown type ${type}`);
  const missing = REQUIRED[type].filter((name) => data[name] === undefined || data[name] === null);
  if (missing.length > 0) throw new ProtocolError("malformed", `${type}: ${missing.join(", ")} is missing`);
  return event;
}
