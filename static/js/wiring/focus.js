/** What a key that leads somewhere does. */

/** An action that puts the keyboard's focus on the first element that `selector` finds. */
export const focusOn = (selector, options) => () => document.querySelector(selector)?.focus(options);
