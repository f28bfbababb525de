/** Blocks that were evicted a moment ago, kept for as long as they fade. Time is an argument, and may go back. */

/** How long an evicted branch is still drawn. */
export const FADE_MS = 9000;
const MAX_GHOSTS = 4000;

export function createGhosts() {
  let before = new Map();
  const ghosts = new Map();
  return {
    all: ghosts,
    /**
     * Takes up the blocks that are there now. Those that were there before and aren't any more become ghosts, but for
     * `fresh`: then what was drawn before was another cache.
     */
    follow(blocks, now, { fresh = false } = {}) {
      if (fresh) ghosts.clear();
      else if (blocks !== before) {
        for (const [hash, block] of before) if (!blocks.has(hash)) ghosts.set(hash, { ...block, gone_ms: now });
      }
      before = blocks;
      for (const [hash, ghost] of ghosts) {
        if (now - ghost.gone_ms > FADE_MS || now < ghost.gone_ms || blocks.has(hash) || ghosts.size > MAX_GHOSTS) ghosts.delete(hash);
      }
    },
  };
}
