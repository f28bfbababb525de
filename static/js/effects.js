/**
 * What the animations show, as a function of time: when each block was reused, born or evicted, and how far that is.
 * Time is an argument; nothing is timed here. Lanes and cache picture read the same clock, so they pulse together.
 */

export const DURATION_MS = { reused: 620, stored: 900, removed: 1400 };
/** A wave runs along a chain: each block starts this much after the one before it, all within WAVE_MS. */
const STEP_MS = 28;
const WAVE_MS = 800;

export class Effects {
  #played = 0;
  #active = new Map();
  #until = 0;

  /** Takes up the effects of `state` that are new. The first state plays none: it happened before the page looked. */
  take(state, now, { still = false } = {}) {
    const fresh = state.effects.filter((effect) => effect.number > this.#played);
    this.#played = Math.max(this.#played, state.effectSeq);
    for (const { kind, hashes, request } of fresh) {
      const step = still ? 0 : Math.min(STEP_MS, WAVE_MS / hashes.length);
      hashes.forEach((hash, i) => {
        const start = now + i * step;
        this.#active.set(hash, { kind, start, request });
        this.#until = Math.max(this.#until, start + DURATION_MS[kind]);
      });
    }
    return fresh;
  }

  /** Forgets what is over. True while something still moves. */
  busy(now) {
    if (now < this.#until) return true;
    this.#active.clear();
    return false;
  }

  /** {kind, request, strength} of a block at `now`, strength from 0 to 1; null where nothing happens to it. */
  at(hash, now, { still = false } = {}) {
    const effect = this.#active.get(hash);
    if (effect === undefined) return null;
    const progress = (now - effect.start) / DURATION_MS[effect.kind];
    if (progress < 0) return effect.kind === "stored" ? { kind: "unborn", request: effect.request, strength: 1 } : null;
    if (progress >= 1) return null;
    return { kind: effect.kind, request: effect.request, strength: still ? 0.8 : strength(effect.kind, progress) };
  }

  /** Hashes to which something happens. */
  hashes() {
    return this.#active.keys();
  }
}

/** A reuse swells and ebbs, a birth flashes and settles, an eviction fades. */
export function strength(kind, progress) {
  if (progress <= 0 || progress >= 1) return 0;
  return kind === "reused" ? Math.sin(Math.PI * Math.sqrt(progress)) : (1 - progress) ** 1.5;
}
