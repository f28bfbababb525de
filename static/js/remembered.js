/** What this browser remembers of the page's own switches. Storage may be forbidden; then nothing is kept. */

const PREFIX = "prefixscope-";

export const remembered = {
  get(name) {
    try {
      return localStorage.getItem(PREFIX + name);
    } catch {
      return null;
    }
  },
  set(name, value) {
    try {
      localStorage.setItem(PREFIX + name, value);
    } catch {
      // The switch still holds until the page is left.
    }
  },
};
