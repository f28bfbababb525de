/** What the doctor found, as the page lists it. Pure. */

/** Tones of a finding by its status. */
const TONES = { on: "good", missing: "bad", unknown: "wait", unsupported: "off", warning: "wait" };
/** What needs a person stands first; within one tone in the doctor's own order. */
const ORDER = ["bad", "wait", "off", "good"];

/** The report on `server` (the first one's where it isn't named): {status, version, findings} or null. */
export function reportOn(report, server) {
  const all = report?.servers ?? [];
  return all.find((one) => one.server === server) ?? all[0] ?? null;
}

/** Findings with their `tone`, those that need something first. */
export function findingsOf(report) {
  const toned = (report?.findings ?? []).map((finding) => ({ ...finding, tone: TONES[finding.status] ?? "wait" }));
  return ORDER.flatMap((tone) => toned.filter((finding) => finding.tone === tone));
}

/** {on, missing, other}: how many findings are how. */
export function tally(report) {
  const counts = { on: 0, missing: 0, other: 0 };
  for (const { status } of report?.findings ?? []) counts[status in counts ? status : "other"] += 1;
  return counts;
}
