/** The cache picture: a Plotly heatmap, a cell a block, with a canvas over it for what moves. */

import { byId, setAttribute, setHidden, setText } from "../dom.js";
import { throttle } from "../frame.js";
import { count } from "../format.js";
import { CELL_FILLS, CELL_INKS } from "../palette.js";
import { chooseCapacity, emptyPlacement, gridShape, placeAll, updatePlacement } from "../placement.js";
import { CELL, cachesOf, cellState, cellTally, holdersByHash, pool, primaryServer, residentBlocks, runningHashes } from "../selectors.js";
import { t } from "../words.js";
import { createOverlay } from "./cache_overlay.js";

const NO_BLOCKS = new Map();
/** No cell is drawn larger than this, in pixels; a small cache leaves room around it instead. */
const LARGEST_CELL = 42;

export function createCache({ effects, getPalette, setFocus, onWhole }) {
  const stage = byId("cache-stage");
  const plot = byId("cache-plot");
  const overlay = createOverlay(byId("cache-overlay"));
  const counts = Object.fromEntries([...document.querySelectorAll("[data-count]")].map((node) => [node.dataset.count, node]));
  const whole = byId("whole-pool");
  const gate = throttle(100);
  let placement = emptyPlacement(0);
  let grid = { columns: 1, rows: 1 };
  let blocks = NO_BLOCKS;
  let drawn = {};
  let cursor = 0;

  whole.addEventListener("click", onWhole);
  stage.addEventListener("pointermove", (event) => {
    const box = stage.getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * grid.columns);
    const row = Math.floor(((event.clientY - box.top) / box.height) * grid.rows);
    point(row * grid.columns + column, event.clientX, event.clientY);
  });
  stage.addEventListener("pointerleave", () => setFocus(null));
  stage.addEventListener("blur", () => setFocus(null));
  stage.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -grid.columns, ArrowDown: grid.columns };
    if (event.key === "Escape") setFocus(null);
    if (!(event.key in moves)) return;
    event.preventDefault();
    cursor = Math.min(placement.capacity - 1, Math.max(0, cursor + moves[event.key]));
    const box = stage.getBoundingClientRect();
    const x = box.left + ((cursor % grid.columns) + 0.5) * (box.width / grid.columns);
    const y = box.top + (Math.floor(cursor / grid.columns) + 1) * (box.height / grid.rows);
    point(cursor, x, y);
  });

  function point(slot, x, y) {
    const hash = placement.hashAt[slot] ?? null;
    const block = hash === null ? undefined : blocks.get(hash);
    if (block === undefined) return setFocus(null);
    cursor = slot;
    return setFocus({ hash, request: null, index: null, server: drawn.server, rank: block.rank ?? drawn.rank, state: null, x, y });
  }

  function place(total, ui, width, height) {
    const least = (width * height) / LARGEST_CELL ** 2;
    const capacity = chooseCapacity(blocks.size, total, { current: placement.capacity, whole: ui.wholePool, least });
    grid = gridShape(Math.max(1, capacity), width, height);
    if (capacity !== placement.capacity || drawn.generation !== drawn.placedGeneration) {
      placement = placeAll(blocks, capacity);
      overlay.forget();
    } else {
      const { gone } = updatePlacement(placement, blocks);
      for (const { hash, slot } of gone) overlay.evicted(slot, hash);
    }
    drawn.placedGeneration = drawn.generation;
  }

  function cells(state) {
    const holders = holdersByHash(state);
    const running = runningHashes(state);
    const z = [];
    for (let row = 0; row < grid.rows; row++) {
      const line = new Array(grid.columns).fill(null);
      for (let column = 0; column < grid.columns; column++) {
        const slot = row * grid.columns + column;
        if (slot >= placement.capacity) break;
        const hash = placement.hashAt[slot];
        line[column] = hash === null ? CELL.empty : cellState(blocks.get(hash), holders, running);
      }
      z.push(line);
    }
    return { z, tally: cellTally(blocks, holders, running) };
  }

  function drawPlot(z, width, height, palette) {
    const gap = placement.capacity <= 8192 && width / grid.columns > 4 ? 1.5 : 0;
    const trace = {
      type: "heatmap", z, zmin: 0, zmax: CELL_FILLS.length, zsmooth: false, showscale: false, hoverinfo: "none",
      xgap: gap, ygap: gap, colorscale: colorscale(palette),
    };
    const axis = { visible: false, fixedrange: true };
    const layout = {
      width, height, margin: { l: 0, r: 0, t: 0, b: 0 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      xaxis: { ...axis, range: [-0.5, grid.columns - 0.5] },
      yaxis: { ...axis, range: [grid.rows - 0.5, -0.5] },
    };
    window.Plotly.react(plot, [trace], layout, { staticPlot: true, displayModeBar: false });
  }

  function drawLegend(tally, parts) {
    for (const name of ["single", "few", "many", "running"]) setText(counts[name], count(parts.reason ? null : tally[CELL[name]]));
    setText(counts.rest, count(parts.rest));
    setText(counts["rest-name"], t(parts.evicted ? "cache.empty" : "cache.fresh"));
    const hidden = parts.total === null ? 0 : parts.total - placement.capacity;
    const scale = byId("cache-scale");
    if (parts.reason) setText(scale, "");
    else if (hidden > 0) setText(scale, t("cache.drawn-some", { drawn: placement.capacity, blocks: t("unit.blocks", { n: parts.total }), hidden }));
    else setText(scale, t("cache.drawn-all", { blocks: t("unit.blocks", { n: placement.capacity }) }));
    setHidden(whole, parts.total === null || parts.total <= 64 || Boolean(parts.reason));
    setText(whole, t(hidden > 0 ? "cache.whole" : "cache.zoom"));
    setAttribute(stage, "data-resident", parts.resident);
  }

  return (state, ui, now) => {
    if (!window.Plotly) return null;
    const server = primaryServer(state);
    const width = stage.clientWidth;
    const height = stage.clientHeight;
    if (width === 0) return null;
    const inputs = [state.caches, state.requests, state.servers, width, height, ui.paint, ui.wholePool];
    const changed = !drawn.inputs || inputs.some((input, i) => input !== drawn.inputs[i]);
    // What is over the cells must never stand beside them.
    const resized = drawn.inputs && (width !== drawn.inputs[3] || height !== drawn.inputs[4]);
    const due = resized ? 0 : gate.wait(now, placement.capacity > 8192 ? 250 : 100);
    let wait = null;
    if (changed && due === 0) {
      const begun = performance.now();
      drawn.server = server?.id ?? null;
      drawn.generation = state.hello?.instance ?? null;
      drawn.rank = server === null ? 0 : (cachesOf(state, server.id)[0]?.rank ?? 0);
      blocks = residentBlocks(state);
      const parts = pool(state);
      place(parts.total, ui, width, height);
      const { z, tally } = cells(state);
      drawPlot(z, width, height, getPalette());
      drawLegend(tally, parts);
      const emptyNote = byId("cache-empty");
      setHidden(emptyNote, parts.reason === null);
      setText(emptyNote, parts.reason === null ? "" : t("cache.nothing", { reason: t(`reason.${parts.reason}`) }));
      setHidden(plot, parts.reason !== null);
      drawn.inputs = inputs;
      drawn.picture = now;
      gate.drawn(now, performance.now() - begun);
    } else if (changed) wait = due;

    const inkOf = (hash) => CELL_INKS[cellState(blocks.get(hash), holdersByHash(state), runningHashes(state))];
    const scene = { width, height, grid, placement, blocks, effects, inkOf, palette: getPalette(), focus: ui.focus, still: ui.still, now, picture: drawn.picture };
    overlay.draw(scene);
    return effects.wait(now, ui) ?? wait;
  };
}

/** Plotly's scale in flat steps, one for each state. */
function colorscale(palette) {
  return CELL_FILLS.flatMap((name, i) => [
    [i / CELL_FILLS.length, palette[name]],
    [(i + 1) / CELL_FILLS.length, palette[name]],
  ]);
}
