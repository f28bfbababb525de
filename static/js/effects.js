/**
 * What the animations show, as a function of time: when each block was reused, born or evicted, and how far that is.
 * Time is an argument; nothing is timed here. Lanes and cache picture read the same clock, so they pulse together. Live,
 * that clock is the page's; at a moment of the past it is the events' own, so that a pause holds and slow motion stretches.
 */

const DURATION_MS = { reused: 620, stored: 900, removed: 1400 };
/** A wave runs along a chain: each block starts this much after the one before it, all within WAVE_MS. */
const STEP_MS = 28;
const WAVE_MS = 800;
const LONGEST_MS = WAVE_MS + Math.max(...Object.values(DURATION_MS));
/** How often marks that don't move are looked at, to be taken off. */
const STILL_MS = 300;

export class Effects {
  #played = 0;
  #active = new Map();
  #until = 0;
  /** Ids of the requests that cause what is going on. */
  #requests = new Set();
  /** {ms, moving, state} of the past that is shown; null: live. */
  #past = null;

  /** The time that animations run on. */
  time(now) {
    return this.#past?.ms ?? now;
  }

  /** Takes up the effects of `state` that are new. The first state plays none: it happened before the page looked. */
  take(state, now, { still = false } = {}) {
    if (this.#past !== null) {
      // What happened while the past was shown isn't played.
      this.#clear();
      this.#past = null;
      this.#played = state.effectSeq;
    }
    const fresh = state.effects.filter((effect) => effect.number > this.#played);
    this.#played = Math.max(this.#played, state.effectSeq);
    for (const effect of fresh) this.#start(effect, now, still);
    return fresh;
  }

  /** Shows the effects of `state` as they stand at `ms` of the events' clock; `moving`: the next moment comes by itself. */
  show(state, ms, { still = false, moving = false } = {}) {
    const same = this.#past?.ms === ms && this.#past.state === state;
    this.#past = { ms, moving, state };
    if (same) return;
    this.#clear();
    for (const effect of state.effects) {
      if (effect.at_ms <= ms && effect.at_ms > ms - LONGEST_MS) this.#start(effect, effect.at_ms, still);
    }
  }

  #clear() {
    this.#active.clear();
    this.#requests.clear();
    this.#until = 0;
  }

  #start({ kind, hashes, request }, from, still) {
    this.#requests.add(request);
    const step = still ? 0 : Math.min(STEP_MS, WAVE_MS / hashes.length);
    hashes.forEach((hash, i) => {
      const start = from + i * step;
      this.#active.set(hash, { kind, start, request });
      this.#until = Math.max(this.#until, start + DURATION_MS[kind]);
    });
  }

  /** Forgets what is over. True while something still moves, or stands in its middle. */
  busy(now) {
    if (this.time(now) < this.#until) return true;
    this.#active.clear();
    this.#requests.clear();
    return false;
  }

  /** When a view of them wants to be drawn again, in the frame's terms. */
  wait(now, { still = false } = {}) {
    if (!this.busy(now) || this.#past?.moving === false) return null;
    return still ? STILL_MS : 0;
  }

  /** {kind, request, strength} of a block at `now`, strength from 0 to 1; null where nothing happens to it. */
  at(hash, now, { still = false } = {}) {
    const effect = this.#active.get(hash);
    if (effect === undefined) return null;
    const progress = (this.time(now) - effect.start) / DURATION_MS[effect.kind];
    if (progress < 0) return waiting(effect);
    if (progress >= 1) return null;
    return { kind: effect.kind, request: effect.request, strength: still ? 0.8 : strength(effect.kind, progress) };
  }

  /** Whether something of what goes on is this request's doing. */
  moves(request) {
    return this.#requests.has(request);
  }

  /** Hashes to which something happens. */
  hashes() {
    return this.#active.keys();
  }
}

/** Before the wave reaches it, a new block isn't there yet and an evicted one still is. */
function waiting({ kind, request }) {
  if (kind === "reused") return null;
  return { kind: kind === "stored" ? "unborn" : kind, request, strength: 1 };
}

/** A reuse swells and ebbs, a birth flashes and settles, an eviction fades. */
export function strength(kind, progress) {
  if (progress <= 0 || progress >= 1) return 0;
  return kind === "reused" ? Math.sin(Math.PI * Math.sqrt(progress)) : (1 - progress) ** 1.5;
}
