/** Puts the page's time together: the log of what came, the moments made of it, and which of them is shown. */

import { createMoments } from "./moment.js";
import { createReplay } from "./replay.js";
import { LIMITS, createTimeline, deflate, inflate } from "./timeline.js";
import { createTrack } from "./track.js";

/**
 * onChange(replay): replay.js' plain data; invalidate(): something came that can be shown now; choose(state): what of a
 * state is shown, the same object for the same state.
 */
export function createTimeMachine({ store, effects, onChange, invalidate, choose = (state) => state }) {
  const timeline = createTimeline({ pack: deflate, unpack: inflate });
  const track = createTrack(LIMITS);
  const replay = createReplay({ timeline, moments: createMoments({ timeline }), onChange, onRead: invalidate });
  let taken = null;

  function current() {
    store.apply();
    return store.state;
  }

  return {
    timeline,
    track,
    replay,
    /** Takes up an event that came as `text` at `now`. Throws what the reducer throws. */
    take(event, text, now) {
      store.push(event);
      timeline.record(event, text, current);
      track.record(event);
      replay.heard(now);
    },
    /** The state to show at `now`, with its effects begun. Throws what the reducer throws. */
    show(now, { still }) {
      const live = choose(current());
      const at = replay.stateAt(now);
      const past = at === null ? null : choose(at);
      if (past !== null) {
        effects.show(past, replay.now.ms, { still, moving: replay.now.playing });
        taken = null;
        return past;
      }
      if (live !== taken) effects.take(live, now, { still });
      taken = live;
      return live;
    },
  };
}
