/**
 * The only code that speaks to `/live`: connects, resumes where it left off, reconnects with jitter, and notices a
 * connection that has gone quiet. Hands whole messages on; knows nothing of their meaning.
 */

const FIRST_DELAY_MS = 400;
const MAX_DELAY_MS = 10_000;
const HEARTBEAT = '{"type":"heartbeat"}';

/** The wait before try number `attempt` (from 1): doubling, of which `random` (0 to 1) takes up to half away. */
export function backoff(attempt, random) {
  return Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1)) * (1 - random / 2);
}

/** The address of the live socket beside the page at `base`, resuming where a position is known. */
export function liveUrl(base, position) {
  const url = new URL("live", base);
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  url.search = "";
  url.hash = "";
  if (position) {
    url.searchParams.set("after", String(position.seq));
    url.searchParams.set("instance", position.instance);
  }
  return url.href;
}

/** Where the page is in the stream of events: known from the first snapshot on, so that only a whole picture resumes. */
export function createPosition() {
  let instance = null;
  let seen = null;
  return {
    get: () => seen,
    forget() {
      seen = null;
    },
    follow(event) {
      if (event.type === "hello") {
        instance = event.data.instance;
        if (seen !== null && seen.instance !== instance) seen = null;
      } else if (seen !== null || event.type === "snapshot") {
        seen = { instance, seq: event.seq };
      }
    },
  };
}

/**
 * Keeps a connection to the live socket beside `base`.
 * position(): {seq, instance} of the last event applied, or null; onMessage(text); onState("connecting" | "live" |
 * "lost"); `silence_ms`: without a message for so long the connection counts as lost; `heartbeat_ms`: the page says so
 * often that it is there, for what stands between and cuts a way on which nothing goes.
 */
export function connect({ base, position, onMessage, onState, silence_ms = 60_000, heartbeat_ms = 15_000, win = window }) {
  let socket = null;
  let attempt = 0;
  let watchdog = 0;
  let beat = 0;

  function open() {
    const mine = new win.WebSocket(liveUrl(base, position()));
    socket = mine;
    let ended = false;
    let heard = win.performance.now();
    const end = () => {
      if (ended) return;
      ended = true;
      win.clearTimeout(watchdog);
      win.clearInterval(beat);
      mine.close();
      attempt += 1;
      onState("lost");
      win.setTimeout(open, backoff(attempt, Math.random()));
    };
    // One timer for all messages: a burst of them sets none anew.
    const watch = () => {
      const rest = heard + silence_ms - win.performance.now();
      if (rest > 0) watchdog = win.setTimeout(watch, rest);
      else end();
    };
    mine.onopen = () => {
      heard = win.performance.now();
      beat = win.setInterval(() => mine.send(HEARTBEAT), heartbeat_ms);
    };
    mine.onmessage = (message) => {
      if (ended) return;
      heard = win.performance.now();
      attempt = 0;
      onState("live");
      onMessage(message.data);
    };
    mine.onclose = end;
    mine.onerror = end;
    watch();
  }

  onState("connecting");
  open();
  /** Ends what is open; a new connection follows, from what `position` then says. */
  return { restart: () => socket?.close() };
}
