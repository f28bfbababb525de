/** The bodies of the requests that this page sent, by the id that the dashboard gave them, with the forecast each had. */

const MAX_KEPT = 50;

/** `send` is api.streamChat; `forecastOf(body)` answers the forecast that stands for a body, or null. */
export function createSentBook({ send, forecastOf = () => null }) {
  const kept = new Map();

  return {
    get: (id) => kept.get(id) ?? null,
    /** The entries, newest first, as [id, {body, forecast}]. */
    newest: () => [...kept].reverse(),
    send(options) {
      const entry = { body: options.body, forecast: forecastOf(options.body) };
      return send({
        ...options,
        onStart(id) {
          if (id !== null) kept.set(id, entry);
          if (kept.size > MAX_KEPT) kept.delete(kept.keys().next().value);
          options.onStart(id);
        },
      });
    },
  };
}
