/**
 * What the page received in the last quarter of an hour, kept so that any moment of it can be shown again. A chapter
 * begins with the state of its beginning and holds the events behind it as the text that came, packed in segments.
 * No clock and no DOM: `pack` and `unpack` are the caller's, time is that of the events.
 */

export const LIMITS = {
  window_ms: 15 * 60_000,
  /** A chapter ends after so long or so much, whatever comes first; the oldest goes as a whole. */
  chapter_ms: 3 * 60_000,
  chapter_bytes: 3_000_000,
  segment_chars: 64_000,
  /** Of all segments together, packed ones as packed. Above it the oldest chapter goes, however young. */
  bytes: 12_000_000,
  /** A clock that goes back by more than this is another clock: what was kept before has no place on it. */
  back_ms: 5_000,
};

/**
 * pack(text) and unpack(packed) resolve to {length, ...} and to the text again. Where packing fails the text is kept.
 */
export function createTimeline({ pack, unpack, limits = LIMITS }) {
  let chapters = [];
  let last_ms = -Infinity;

  function begin(state) {
    const chapter = { state, from_ms: last_ms, to_ms: last_ms, size: 0, segments: [] };
    chapters.push(chapter);
    while (chapters.length > 1 && (chapters[1].from_ms < last_ms - limits.window_ms || sizeOf(chapters) > limits.bytes)) chapters.shift();
  }

  function isFull(chapter) {
    return last_ms - chapter.from_ms > limits.chapter_ms || chapter.size > limits.chapter_bytes;
  }

  function add(chapter, text) {
    let segment = chapter.segments.at(-1);
    if (segment === undefined || segment.texts === null || segment.size > limits.segment_chars) {
      segment = { before_ms: chapter.to_ms, from_ms: last_ms, to_ms: last_ms, count: 0, size: 0, texts: [], packed: null };
      chapter.segments.push(segment);
    }
    segment.texts.push(text);
    segment.count += 1;
    segment.size += text.length;
    chapter.size += text.length;
    segment.to_ms = chapter.to_ms = last_ms;
    if (segment.size > limits.segment_chars) seal(chapter, segment);
  }

  async function seal(chapter, segment) {
    const text = `[${segment.texts.join(",")}]`;
    segment.texts = null;
    segment.packed = { text, length: text.length };
    try {
      segment.packed = await pack(text);
      chapter.size += segment.packed.length - segment.size;
      segment.size = segment.packed.length;
    } catch {
      // Larger than need be, and as good.
    }
  }

  return {
    /** Takes up an event that came as `text`. `stateNow()`: the state with this event and all before it. */
    record(event, text, stateNow) {
      if (event.at_ms < last_ms - limits.back_ms) {
        chapters = [];
        last_ms = -Infinity;
      }
      last_ms = Math.max(last_ms, event.at_ms);
      const chapter = chapters.at(-1);
      // A snapshot is a state of its own; before the first there is nothing to see.
      if (event.type === "snapshot") begin(stateNow());
      else if (chapter === undefined) {
        const state = stateNow();
        if (state.ready) begin(state);
      } else if (isFull(chapter)) begin(stateNow());
      else add(chapter, text);
    },
    /** {from_ms, to_ms} of what can be shown, or null. */
    range() {
      return chapters.length === 0 ? null : { from_ms: Math.max(chapters[0].from_ms, last_ms - limits.window_ms), to_ms: last_ms };
    },
    /** The chapter that holds the moment: {state, from_ms, to_ms, segments}; the first where it is before all. */
    chapterAt(ms) {
      return chapters.findLast((chapter) => chapter.from_ms <= ms) ?? chapters[0] ?? null;
    },
    /** The events of a segment, each with `shown_ms`, the time from which it is shown: times never go back. */
    async read(segment) {
      let text = null;
      if (segment.texts !== null) text = `[${segment.texts.join(",")}]`;
      else text = segment.packed.text ?? (await unpack(segment.packed));
      let shown_ms = segment.before_ms;
      return JSON.parse(text).map((event) => ({ event, shown_ms: (shown_ms = Math.max(shown_ms, event.at_ms)) }));
    },
    /** For tests and measurements. */
    size: () => ({ bytes: sizeOf(chapters), chapters: chapters.length, events: chapters.flatMap(({ segments }) => segments).reduce((sum, { count }) => sum + count, 0) }),
  };
}

const sizeOf = (chapters) => chapters.reduce((sum, { size }) => sum + size, 0);

/** Text as deflated bytes. */
export async function deflate(text) {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export async function inflate(bytes) {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
}
