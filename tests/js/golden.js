/** The golden events that Python and the page agree on. */

import { readFileSync, readdirSync } from "node:fs";

const folder = new URL("../contract/golden/", import.meta.url);

export const goldenNames = readdirSync(folder)
  .filter((name) => name.endsWith(".json"))
  .map((name) => name.replace(/\.json$/, ""));

export const goldenText = (name) => readFileSync(new URL(`${name}.json`, folder), "utf8");
export const golden = (name) => JSON.parse(goldenText(name));

/** An event like the golden one of this name, with some of its data replaced. */
export function like(name, data = {}, envelope = {}) {
  const event = golden(name);
  return { ...event, ...envelope, data: { ...event.data, ...data } };
}
