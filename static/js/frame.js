/**
 * The one animation frame: everything that writes the DOM does it here.
 * A view is a function (state, ui, now) that answers when it wants to be drawn again: 0 for the next frame, a number of
 * milliseconds, or null for "when something changes".
 */

export function createFrame({ prepare, views, onError, win = window }) {
  let scheduled = 0;
  let timer = 0;

  function draw() {
    scheduled = 0;
    win.clearTimeout(timer);
    timer = 0;
    const now = win.performance.now();
    const { state, ui } = prepare(now);
    let wait = Infinity;
    for (const view of views) {
      try {
        const wanted = view(state, ui, now);
        if (typeof wanted === "number") wait = Math.min(wait, wanted);
      } catch (error) {
        onError(error);
      }
    }
    if (wait <= 0) invalidate();
    else if (wait < Infinity) timer = win.setTimeout(invalidate, wait);
  }

  /** Draws in the next frame; a hidden tab has none, so nothing is drawn there. */
  function invalidate() {
    if (scheduled === 0) scheduled = win.requestAnimationFrame(draw);
  }

  return { invalidate };
}

/** Draws at most once in `interval` ms: answers 0 when due, else the milliseconds to wait. */
export function throttle(interval) {
  let last = -Infinity;
  return {
    wait: (now) => Math.max(0, last + interval - now),
    drawn(now) {
      last = now;
    },
  };
}
