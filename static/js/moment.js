/**
 * The state at a moment of the timeline: that of the chapter's beginning and the events up to the moment. What was read
 * and worked out on the way is kept, within bounds, so that the next moment near it costs little.
 */

import { reduceAll } from "./store.js";

const MAX_SEGMENTS = 24;
const MAX_STOPS = 48;

export function createMoments({ timeline, reduce = reduceAll }) {
  /** Segment to its events, and places whose state is known, both oldest first. */
  const read = new Map();
  let stops = [];
  let cursor = null;
  let loading = null;

  function keep(segment, events) {
    read.delete(segment);
    read.set(segment, events);
    if (read.size > MAX_SEGMENTS) read.delete(read.keys().next().value);
  }

  /** The last known place of `chapter` at or before `ms`: {chapter, segment, event, state, ms}. */
  function startOf(chapter, ms) {
    let best = { chapter, segment: 0, event: 0, state: chapter.state, ms: chapter.from_ms };
    for (const stop of cursor === null ? stops : [...stops, cursor]) {
      if (stop.chapter === chapter && stop.ms <= ms && isAfter(stop, best)) best = stop;
    }
    return best;
  }

  /** The segment's events, or null where those up to `ms` aren't all read: the last segment still grows. */
  function eventsUpTo(segment, ms) {
    const events = read.get(segment);
    if (events === undefined) return null;
    return events.length === segment.count || events.at(-1).shown_ms > ms ? events : null;
  }

  /** Goes on from `start` to `ms` as far as what is read reaches: {place, missing}, `missing` the segment to read. */
  function walk(start, ms) {
    const { segments } = start.chapter;
    const place = { ...start };
    while (place.segment < segments.length && segments[place.segment].from_ms <= ms) {
      const segment = segments[place.segment];
      const events = eventsUpTo(segment, ms);
      if (events === null) return { place, missing: segment };
      let to = place.event;
      while (to < events.length && events[to].shown_ms <= ms) to += 1;
      if (to > place.event) {
        const fresh = events.slice(place.event, to).map(({ event }) => event);
        Object.assign(place, { state: reduce(place.state, fresh), event: to, ms: events[to - 1].shown_ms });
      }
      if (to < events.length || place.segment === segments.length - 1) break;
      Object.assign(place, { segment: place.segment + 1, event: 0 });
      addStop({ ...place });
    }
    return { place, missing: null };
  }

  function addStop(stop) {
    if (stops.some(({ chapter, segment }) => chapter === stop.chapter && segment === stop.segment)) return;
    stops.push(stop);
    if (stops.length > MAX_STOPS) stops.shift();
  }

  return {
    /**
     * {state, pending} at `ms`: where something must be read first, the last state that was answered and, as `pending`,
     * a promise after which to ask again. The same state as long as no event lies between.
     */
    at(ms) {
      const chapter = timeline.chapterAt(ms);
      if (chapter === null) return { state: null, pending: null };
      const { place, missing } = walk(startOf(chapter, ms), ms);
      if (missing === null) {
        cursor = place;
        return { state: place.state, pending: null };
      }
      loading ??= timeline
        .read(missing)
        .then((events) => keep(missing, events))
        .finally(() => (loading = null));
      return { state: cursor?.state ?? chapter.state, pending: loading };
    },
    /** Lets go of all: what is live needs none of it. */
    forget() {
      read.clear();
      stops = [];
      cursor = null;
    },
  };
}

const isAfter = (a, b) => a.segment > b.segment || (a.segment === b.segment && a.event >= b.event);
