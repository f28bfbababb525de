/**
 * What the page knows, as plain data, and how each event changes it: `reduce(state, event)` is pure.
 * `reduceAll` applies a batch with one copy of each container that it touches, so that a burst costs no copy an event.
 * Blocks of a cache are a Map from hash to entry; entries are replaced, never changed.
 */

export const MAX_REQUESTS = 200;
export const MAX_METRICS = 900;
/** Effects are what the animations play: the last few reuses, births and evictions, numbered. */
const MAX_EFFECTS = 400;

export function initialState() {
  return {
    hello: null,
    ready: false,
    seq: 0,
    at_ms: null,
    serverOrder: [],
    servers: {},
    requestOrder: [],
    requests: {},
    caches: {},
    rates: {},
    /** By server: readings that disagree, and what the rates were as they changed, oldest first. */
    differences: {},
    rateLog: {},
    /** By server: the newest reading of each `engine` label, which the figures pool. */
    engines: {},
    metrics: {},
    gaps: {},
    scenario: null,
    effects: [],
    effectSeq: 0,
  };
}

export const cacheKey = (server, rank) => `${server}|${rank ?? 0}`;

export function reduce(state, event) {
  return reduceAll(state, [event]);
}

/** The state after `events`, in order. Throws for an event type that it doesn't know. */
export function reduceAll(state, events) {
  if (events.length === 0) return state;
  const draft = { ...state };
  const owned = new Set();
  for (const event of events) {
    const handler = HANDLERS[event.type];
    if (handler === undefined) throw new Error(`no reducer for ${event.type}`);
    handler(draft, event, owned);
    draft.seq = event.seq;
    draft.at_ms = event.at_ms;
  }
  return draft;
}

/** A container of the draft that may be changed: copied the first time in a batch. */
function own(draft, owned, name) {
  if (!owned.has(name)) {
    owned.add(name);
    draft[name] = Array.isArray(draft[name]) ? [...draft[name]] : { ...draft[name] };
  }
  return draft[name];
}

function ownCache(draft, owned, server, rank) {
  const key = cacheKey(server, rank);
  const caches = own(draft, owned, "caches");
  if (!owned.has(`cache:${key}`)) {
    owned.add(`cache:${key}`);
    const cache = caches[key] ?? { server, rank: rank ?? 0, block_size: null, blocks: new Map() };
    caches[key] = { ...cache, blocks: new Map(cache.blocks) };
  }
  return caches[key];
}

const HANDLERS = {
  hello(draft, event, owned) {
    const changed = draft.hello !== null && draft.hello.instance !== event.data.instance;
    if (changed) {
      owned.clear();
      Object.assign(draft, initialState(), { effectSeq: draft.effectSeq });
    }
    draft.hello = event.data;
  },

  snapshot(draft, event, owned) {
    const { data } = event;
    owned.clear();
    const kept = data.requests.slice(0, MAX_REQUESTS);
    Object.assign(draft, initialState(), { hello: draft.hello, effectSeq: draft.effectSeq + 1, ready: true });
    draft.serverOrder = data.servers.map((server) => server.id);
    draft.servers = Object.fromEntries(data.servers.map((server) => [server.id, server]));
    draft.requestOrder = kept.map((summary) => summary.record.id);
    draft.requests = Object.fromEntries(
      kept.map(({ record, block_table }) => [record.id, { record, table: block_table ?? null }]),
    );
    draft.rates = { ...data.rates };
    draft.differences = { ...data.differences };
    draft.rateLog = Object.fromEntries(Object.entries(data.rates).map(([server, rates]) => [server, [{ at_ms: event.at_ms, rates }]]));
    draft.metrics = Object.fromEntries(
      Object.entries(data.metrics).map(([server, points]) => [server, points.slice(-MAX_METRICS)]),
    );
    draft.scenario = data.scenario ?? null;
    draft.caches = Object.fromEntries(data.blocks.map((columns) => readColumns(columns, kept)));
  },

  "request.started": upsertRequest,
  "request.first_token": upsertRequest,
  "request.joined": upsertRequest,
  "request.finished": upsertRequest,
  "request.failed": upsertRequest,

  "blocks.stored"(draft, event, owned) {
    const { data, server, rank, at_ms } = event;
    const cache = ownCache(draft, owned, server, rank);
    if (data.tokens) cache.block_size = data.tokens;
    const born = [];
    let parent = data.parent ?? null;
    data.hash.forEach((hash, i) => {
      const before = cache.blocks.get(hash);
      if (before === undefined) born.push(hash);
      cache.blocks.set(hash, {
        hash,
        parent,
        depth: data.depth === null || data.depth === undefined ? null : data.depth + i,
        tokens: data.tokens ?? 0,
        medium: data.medium ?? null,
        copies: data.copies[i] ?? 1,
        otherRequests: before?.otherRequests ?? 0,
        reuses: before?.reuses ?? 0,
        stored_ms: before?.stored_ms ?? at_ms,
      });
      parent = hash;
    });
    addEffect(draft, owned, event, "stored", born);
  },

  "blocks.reused"(draft, event, owned) {
    const cache = ownCache(draft, owned, event.server, event.rank);
    for (const hash of event.data.hash) {
      const block = cache.blocks.get(hash);
      if (block) cache.blocks.set(hash, { ...block, reuses: block.reuses + 1 });
    }
    addEffect(draft, owned, event, "reused", event.data.hash);
  },

  "blocks.removed"(draft, event, owned) {
    const cache = ownCache(draft, owned, event.server, event.rank);
    const gone = [];
    event.data.hash.forEach((hash, i) => {
      const block = cache.blocks.get(hash);
      const copies = event.data.copies[i] ?? 0;
      if (block && copies > 0) cache.blocks.set(hash, { ...block, copies });
      if (copies > 0 || !block) return;
      cache.blocks.delete(hash);
      gone.push(hash);
    });
    addEffect(draft, owned, event, "removed", gone);
  },

  "blocks.cleared"(draft, event, owned) {
    const cache = ownCache(draft, owned, event.server, event.rank);
    const gone = [...cache.blocks.keys()];
    cache.blocks = new Map();
    addEffect(draft, owned, event, "removed", gone);
  },

  "metrics.sampled"(draft, event, owned) {
    const points = own(draft, owned, "metrics")[event.server] ?? [];
    draft.metrics[event.server] = [...points.slice(-(MAX_METRICS - 1)), event.data.point];
    own(draft, owned, "engines")[event.server] = event.data.engines;
  },

  "hit_rate.updated"(draft, event, owned) {
    const { rates, differences } = event.data;
    own(draft, owned, "rates")[event.server] = rates;
    own(draft, owned, "differences")[event.server] = differences ?? [];
    const log = own(draft, owned, "rateLog");
    log[event.server] = [...(log[event.server] ?? []).slice(-(MAX_METRICS - 1)), { at_ms: event.at_ms, rates }];
  },

  "server.changed"(draft, event, owned) {
    const { server } = event.data;
    own(draft, owned, "servers")[server.id] = server;
    if (!draft.serverOrder.includes(server.id)) draft.serverOrder = [...draft.serverOrder, server.id];
  },

  "stream.gapped"(draft, event, owned) {
    own(draft, owned, "gaps")[cacheKey(event.server, event.rank)] = { ...event.data, at_ms: event.at_ms };
  },

  "stream.resynced"(draft, event, owned) {
    delete own(draft, owned, "gaps")[cacheKey(event.server, event.rank)];
  },

  "scenario.advanced"(draft, event) {
    draft.scenario = event.data.scenario;
  },
};

function upsertRequest(draft, event, owned) {
  const { record, block_table } = event.data;
  const requests = own(draft, owned, "requests");
  const before = requests[record.id];
  requests[record.id] = { record, table: block_table ?? before?.table ?? null };
  if (before !== undefined) return;
  const order = own(draft, owned, "requestOrder");
  order.unshift(record.id);
  while (order.length > MAX_REQUESTS) forgetRequest(draft, owned, order.pop());
}

/** The server still counts a request that the page no longer keeps as one that shares its blocks. */
function forgetRequest(draft, owned, id) {
  const { record, table } = draft.requests[id];
  delete draft.requests[id];
  const key = cacheKey(record.server, record.rank);
  if (!table || !draft.caches[key]) return;
  const cache = ownCache(draft, owned, record.server, record.rank);
  for (const hash of table.hash) {
    const block = hash === null ? undefined : cache.blocks.get(hash);
    if (block) cache.blocks.set(hash, { ...block, otherRequests: block.otherRequests + 1 });
  }
}

function addEffect(draft, owned, event, kind, hashes) {
  if (hashes.length === 0) return;
  draft.effectSeq += 1;
  const effects = own(draft, owned, "effects");
  effects.push({
    number: draft.effectSeq,
    at_ms: event.at_ms,
    kind,
    cache: cacheKey(event.server, event.rank),
    request: event.data.request ?? null,
    hashes,
  });
  if (effects.length > MAX_EFFECTS) effects.splice(0, effects.length - MAX_EFFECTS);
}

/** A snapshot's columns as a cache. `otherRequests`: those that hold the block and that the snapshot left out. */
function readColumns(columns, kept) {
  const holders = new Map();
  for (const { block_table: table } of kept) {
    for (const hash of new Set(table?.hash ?? [])) if (hash) holders.set(hash, (holders.get(hash) ?? 0) + 1);
  }
  const blocks = new Map();
  columns.hash.forEach((hash, row) => {
    const parentRow = columns.parent_row[row];
    blocks.set(hash, {
      hash,
      parent: parentRow === null || parentRow === undefined ? null : columns.hash[parentRow],
      depth: columns.depth[row],
      tokens: columns.tokens[row],
      medium: columns.medium[row],
      copies: columns.copies[row],
      otherRequests: Math.max(0, columns.requests[row] - (holders.get(hash) ?? 0)),
      reuses: columns.reuses[row],
      stored_ms: columns.stored_ms[row],
    });
  });
  const { server, rank, block_size } = columns;
  return [cacheKey(server, rank), { server, rank, block_size, blocks }];
}

/** The store that the page runs on: a state and a queue of events that the next frame applies in one go. */
export function createStore({ maxQueue = 2000 } = {}) {
  let state = initialState();
  let queue = [];
  const store = {
    get state() {
      return state;
    },
    push(event) {
      queue.push(event);
      if (queue.length > maxQueue) store.apply();
    },
    /** Applies what was pushed; true where the state changed. */
    apply() {
      if (queue.length === 0) return false;
      const events = queue;
      queue = [];
      state = reduceAll(state, events);
      return true;
    },
  };
  return store;
}
