/** The health of the KV-event streams: how far the block picture can be trusted, and why. Pure. */

const WORST = ["none", "partial", "complete"];

/** "complete", "partial" or "none": the worst of a server's streams; none without a stream. */
export function coverageOf(server) {
  const streams = server?.streams ?? [];
  if (streams.length === 0) return "none";
  return WORST.find((coverage) => streams.some((stream) => stream.coverage === coverage)) ?? "none";
}

/** {coverage, since_ms, unconfirmed}: `since_ms` is the latest of the ranks'; unconfirmed: told to empty, not yet heard. */
export function pictureOf(server) {
  const streams = server?.streams ?? [];
  const known = streams.map((stream) => stream.since_ms).filter((since) => typeof since === "number");
  return {
    coverage: coverageOf(server),
    since_ms: known.length === 0 ? null : Math.max(...known),
    unconfirmed: streams.some((stream) => stream.unconfirmed_clear === true),
  };
}

const BAD = ["off", "disconnected", "silent"];

/** "good", "wait" or "bad" of one stream. */
export function streamTone(stream) {
  if (BAD.includes(stream.state)) return "bad";
  if (stream.state === "connecting" || stream.coverage !== "complete" || stream.unconfirmed_clear) return "wait";
  return "good";
}

/** Fields of a stream's health that should stay 0: one that doesn't is marked. */
const FAULTS = new Set(["gaps", "lost", "orphans", "unknown_removes", "duplicates", "malformed", "unknown_types"]);

/**
 * A stream's health as groups of fields: [{group, fields: [{field, kind, value, fault}]}]. `kind` says how it is written:
 * count, rate, age (of a moment, in ms), text, word (its words are `streams.FIELD.VALUE`). null is unknown.
 */
export function streamFields(stream) {
  const field = (name, kind = "count", value = stream[name]) => ({
    field: name, kind, value: value ?? null, fault: FAULTS.has(name) && value > 0,
  });
  return [
    {
      group: "flow",
      fields: [
        field("last_batch_ms", "age"), field("batches"), field("batches_per_s", "rate"), field("blocks_per_s", "rate"),
        field("blocks_stored"), field("blocks_removed"),
      ],
    },
    {
      group: "history",
      fields: [
        field("last_seq"), field("gaps"), field("replayed"), field("lost"), field("restarts"),
        field("replay_available", "word", yesNo(stream.replay_available)),
      ],
    },
    {
      group: "faults",
      fields: [
        field("orphans"), field("unknown_removes"), field("duplicates"), field("malformed"), field("unknown_types"),
        field("wire_form", "word"),
      ],
    },
  ];
}

const yesNo = (value) => (value === null || value === undefined ? null : value ? "yes" : "no");

/** What is wrong with a stream, for a person: {code, text, params} of the diagnosis, else its message; null if nothing. */
export function diagnosisOf(stream) {
  if (stream.diagnosis) return stream.diagnosis;
  return stream.message ? { code: null, text: stream.message, params: {} } : null;
}

/** {heard, expected}: ranks whose events come, and that are looked for; expected is null where it isn't known. */
export function ranksOf(server) {
  return { heard: server?.ranks_heard ?? 0, expected: server?.ranks_expected ?? null };
}

/** KV cache groups of all ranks: {rank, group, medium, kind, block_size, blocks, copies, walked}. */
export const groupsOf = (server) =>
  (server?.streams ?? []).flatMap((stream) => (stream.groups ?? []).map((group) => ({ rank: stream.rank, ...group })));
