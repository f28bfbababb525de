/** From the live socket to the page: decodes what comes, follows the position in it, and begins anew where it broke. */

import { connect, createPosition } from "./connection.js";
import { decodeMessage } from "./protocol.js";

/**
 * Keeps the page listening. What can't be read is noted once a kind, and stops nothing. Answers {beginAnew(error)}: events
 * that can't be applied leave no picture to go on from; a fresh snapshot does.
 */
export function listen({ take, set, getUi }) {
  const position = createPosition();
  const noted = new Set();

  function decode(text) {
    try {
      return decodeMessage(text);
    } catch (error) {
      if (error.code === "version" && getUi().mismatch === null) set({ mismatch: error.message });
      if (!noted.has(error.message)) console.info(`Left out: ${error.message}`);
      noted.add(error.message);
      return null;
    }
  }

  const heartbeat_ms = 1000 * (readConfig().heartbeat_s ?? 15);
  const link = connect({
    base: document.baseURI,
    heartbeat_ms,
    // A server that is slow for three of them is slow, not gone.
    silence_ms: 4 * heartbeat_ms,
    position: position.get,
    onState(connection) {
      if (getUi().connection !== connection) set({ connection });
    },
    onMessage(text) {
      const event = decode(text);
      if (event === null) return;
      position.follow(event);
      take(event, text);
    },
  });

  return {
    beginAnew(error) {
      console.error(error);
      position.forget();
      link.restart();
    },
  };
}

/** What the server told the page in its one JSON script tag. */
function readConfig() {
  return JSON.parse(document.getElementById("config").textContent);
}
