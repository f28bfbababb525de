/**
 * The one animation frame: everything that writes the DOM does it here.
 * A view is a function (state, ui, now) that answers when it wants to be drawn again: 0 for the next frame, a number of
 * milliseconds, or null for "when something changes".
 */

/** Once a frame has taken so long, the views that are left are drawn in the next one, which begins with them. */
const BUDGET_MS = 40;

export function createFrame({ prepare, views, onError, win = window }) {
  let scheduled = 0;
  let timer = 0;
  let first = 0;

  /** Draws at once: for what can't wait for a frame, such as the printer. */
  function draw() {
    scheduled = 0;
    win.clearTimeout(timer);
    timer = 0;
    const now = win.performance.now();
    const { state, ui } = prepare(now);
    let wait = Infinity;
    const order = [...views.slice(first), ...views.slice(0, first)];
    const begun = first;
    first = 0;
    for (const [i, view] of order.entries()) {
      if (i > 0 && win.performance.now() - now > BUDGET_MS) {
        first = (begun + i) % views.length;
        wait = 0;
        break;
      }
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

  return { invalidate, draw };
}

/**
 * Draws at most once in `interval` ms, and where one drawing takes long, so seldom that it takes a fifth of the time:
 * wait(now, interval) answers 0 when due, else the milliseconds to wait; drawn(now, cost) says when and how long.
 */
export function throttle(interval) {
  let last = -Infinity;
  let pause = 0;
  return {
    wait: (now, least = interval) => Math.max(0, last + Math.max(least, pause) - now),
    drawn(now, cost = 0) {
      last = now;
      pause = cost * 5;
    },
  };
}
