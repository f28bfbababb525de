/**
 * The one animation frame: everything that writes the DOM does it here.
 * A view is a function (state, ui, now) that answers when it wants to be drawn again: 0 as soon as may be, a number of
 * milliseconds, or null for "when something changes".
 */

/** Once a frame has taken so long, the views that are left are drawn in the next one, which begins with them. */
const BUDGET_MS = 16;
/** What moves by itself takes a quarter of the time for drawing: the browser needs as much again to paint it. */
const PAUSE_PER_MS = 4;
/** And is drawn at least so often. */
const LONGEST_PAUSE_MS = 70;
/** A pause shorter than this is the next frame's. */
const SHORTEST_PAUSE_MS = 12;

export function createFrame({ prepare, views, onError, win = window }) {
  let scheduled = 0;
  let timer = 0;
  let due = Infinity;
  let first = 0;
  /** Before this, what moves by itself isn't drawn again; what a person does is. */
  let rested = -Infinity;

  /** Draws at once: for what can't wait for a frame, such as the printer; `whole`: however long it takes. */
  function draw({ whole = false } = {}) {
    scheduled = 0;
    win.clearTimeout(timer);
    timer = 0;
    due = Infinity;
    const now = win.performance.now();
    const { state, ui } = prepare(now);
    let wait = Infinity;
    const order = [...views.slice(first), ...views.slice(0, first)];
    const begun = first;
    let left = false;
    first = 0;
    for (const [i, view] of order.entries()) {
      if (i > 0 && !whole && win.performance.now() - now > BUDGET_MS) {
        first = (begun + i) % views.length;
        left = true;
        break;
      }
      try {
        const wanted = view(state, ui, now);
        if (typeof wanted === "number") wait = Math.min(wait, wanted);
      } catch (error) {
        onError(error);
      }
    }
    const ended = win.performance.now();
    rested = now + Math.min(LONGEST_PAUSE_MS, (ended - now) * PAUSE_PER_MS);
    if (left) invalidate();
    else if (wait < Infinity) after(Math.max(wait, rested - ended), ended);
  }

  /** Draws in the next frame; a hidden tab has none, so nothing is drawn there. */
  function invalidate() {
    if (scheduled === 0) scheduled = win.requestAnimationFrame(() => draw());
  }

  /** Draws soon: for what comes by itself, however often. */
  function soon() {
    const now = win.performance.now();
    after(rested - now, now);
  }

  function after(wait, now) {
    if (wait < SHORTEST_PAUSE_MS) invalidate();
    else if (scheduled === 0 && now + wait < due) {
      win.clearTimeout(timer);
      due = now + wait;
      timer = win.setTimeout(invalidate, wait);
    }
  }

  return { invalidate, soon, draw };
}

/** However slow one drawing was, the next isn't put off for longer. */
const LONGEST_REST_MS = 1000;

/**
 * Draws at most once in `interval` ms, and where one drawing takes long, so seldom that it takes an eighth of the time:
 * wait(now, interval) answers 0 when due, else the milliseconds to wait; drawn(now, cost) says when and how long.
 */
export function throttle(interval) {
  let last = -Infinity;
  let pause = 0;
  return {
    wait: (now, least = interval) => Math.max(0, last + Math.max(least, pause) - now),
    drawn(now, cost = 0) {
      last = now;
      pause = Math.min(LONGEST_REST_MS, cost * 8);
    },
  };
}
