/** Redacted mode: text that came from prompts and answers, as shapes of the same length. Pure. */

const MARK = "▪";

/** Whether no text is to be shown. */
export const isRedacted = (state, ui) => ui.redacted || state.hello?.redact === true;

/** Every character but white space as a mark: length and word shapes stay. null stays null. */
export const mask = (text) => (typeof text === "string" ? Array.from(text, (each) => (/\s/.test(each) ? each : MARK)).join("") : (text ?? null));

/** A state whose records show no text; the same object for the same state, and its parts for as long as they are the same. */
export function createRedaction() {
  const entries = new WeakMap();
  const lists = new WeakMap();
  const states = new WeakMap();

  function once(kept, key, make) {
    if (!kept.has(key)) kept.set(key, make());
    return kept.get(key);
  }

  const redactEntry = (entry) => ({ ...entry, record: { ...entry.record, label: mask(entry.record.label), error: mask(entry.record.error) } });
  const redactRequests = (requests) =>
    Object.fromEntries(Object.entries(requests).map(([id, entry]) => [id, once(entries, entry, () => redactEntry(entry))]));

  return {
    state: (state) => once(states, state, () => ({ ...state, requests: once(lists, state.requests, () => redactRequests(state.requests)) })),
    /** What "Try it" says of its own run. */
    run: (run) => once(states, run, () => ({ ...run, question: mask(run.question), answer: mask(run.answer), error: mask(run.error) })),
  };
}

/** An answer of the API with every `text`, and every string in `cells`, masked, however deep they stand. */
export function redactAnswer(value) {
  if (Array.isArray(value)) return value.map(redactAnswer);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => {
      if (name === "text" || name.startsWith("text_here") || name.startsWith("text_there")) return [name, mask(field)];
      if (name === "cells" && Array.isArray(field)) return [name, field.map(mask)];
      return [name, redactAnswer(field)];
    }),
  );
}
