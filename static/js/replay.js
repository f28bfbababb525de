/**
 * Where on the timeline the page is: live, or at a moment of the past that stands or plays. Time is an argument; what is
 * shown of it is plain data, handed to `onChange` after each change that isn't the time's own.
 */

export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10];
/** Slow motion out of the live picture begins so long before, so that there is something to see. */
const BACK_MS = 2_000;

/** ms: the moment, on the events' clock; `reading`: what is shown isn't yet that of the moment. */
export const LIVE = { on: false, ms: null, playing: false, speed: 1, reading: false };

/** timeline, moments: the log and the states made of it; onRead(): what was missing has been read. */
export function createReplay({ timeline, moments, onChange, onRead }) {
  let replay = LIVE;
  let before = 0;
  let heard = 0;

  function update(fields) {
    replay = { ...replay, ...fields };
    onChange(replay);
  }

  /** The end of the timeline moves on between events. */
  const edge = (now) => timeline.range().to_ms + Math.max(0, now - heard);

  function seek(ms, now, fields = {}) {
    const range = timeline.range();
    if (range === null) return;
    before = now;
    update({ on: true, ms: Math.min(Math.max(ms, range.from_ms), edge(now)), ...fields });
  }

  function live() {
    if (!replay.on) return;
    moments.forget();
    update({ ...LIVE });
  }

  function faster(steps, now) {
    if (!replay.on) return slow(now);
    const at = SPEEDS.indexOf(replay.speed);
    return update({ speed: SPEEDS[Math.min(SPEEDS.length - 1, Math.max(0, at + steps))] });
  }

  function slow(now) {
    if (timeline.range() === null) return;
    if (!replay.on) seek(edge(now) - BACK_MS, now, { playing: true, speed: SPEEDS[0] });
    else update({ speed: replay.speed < 1 ? 1 : SPEEDS[0] });
  }

  return {
    get now() {
      return replay;
    },
    /** An event came: the timeline's end is `now`. */
    heard(now) {
      heard = now;
    },
    edge: (now) => (timeline.range() === null ? null : edge(now)),
    /** To a moment; what plays goes on from there. */
    seek,
    /** Forward or back from the moment that is shown. */
    skip(by_ms, now) {
      if (timeline.range() !== null) seek((replay.on ? replay.ms : edge(now)) + by_ms, now);
    },
    /** Holds the page where it is, or goes on from there. */
    toggle(now) {
      if (timeline.range() === null) return;
      if (!replay.on) seek(edge(now), now);
      else seek(replay.ms, now, { playing: !replay.playing });
    },
    slow,
    faster,
    live,
    /** The state to show at `now`; null: the live one. What plays comes back to it where it catches up. */
    stateAt(now) {
      if (!replay.on) return null;
      if (replay.playing) {
        const ms = replay.ms + (now - before) * replay.speed;
        before = now;
        if (ms >= edge(now)) {
          live();
          return null;
        }
        replay = { ...replay, ms };
      }
      const { state, pending } = moments.at(replay.ms);
      if (replay.reading !== (pending !== null)) replay = { ...replay, reading: pending !== null };
      pending?.then(onRead, onRead);
      return state;
    },
  };
}
