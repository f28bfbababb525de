/** Whole numbers as text, and what unknown looks like: what `words` and `format` both need. Pure. */

export const UNKNOWN = "—";

const COUNT = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const known = (value) => typeof value === "number" && Number.isFinite(value);

/** A whole number with thousands separators: the same digits in every language of the page. */
export function count(value) {
  return known(value) ? COUNT.format(value) : UNKNOWN;
}
