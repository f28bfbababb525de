/** The live block tables: a lane a request, newest on top, all on one axis. */

import { indexAt, spanOf, ticksOf } from "../axis.js";
import { byId, make, setAttribute, setChildren, setHidden, setStyle, setText } from "../dom.js";
import { UNKNOWN, clip, duration, requestName } from "../format.js";
import { firstTokenTime, isRunning, primaryServer, requestRows, warmth } from "../selectors.js";
import { hasWords, t } from "../words.js";
import { drawLane } from "./lane_canvas.js";

const MAX_LANES = 40;
const NO_TABLE = { hash: [], tokens: [], state: [] };

/** "12 of 13", or what came instead. Pure. */
export function countText(record) {
  if (record.outcome !== null && record.outcome !== "ok") {
    if (record.outcome === "http_error" && record.status) return t("outcome.http_status", { status: String(record.status) });
    return hasWords(`outcome.${record.outcome}`) ? t(`outcome.${record.outcome}`) : record.outcome;
  }
  if (record.prompt_blocks === null) return isRunning(record) ? "…" : UNKNOWN;
  return t("lanes.count", { reused: record.reused_blocks, blocks: record.prompt_blocks });
}

/** What a screen reader says of a lane. Pure. */
export function laneLabel(record) {
  const { id, label } = record;
  const name = label ? t("lanes.label-named", { name: requestName(id), label }) : t("lanes.label", { name: requestName(id) });
  if (isRunning(record)) return t("lanes.label-running", { name });
  if (record.outcome !== "ok") return t("lanes.label-failed", { name, what: countText(record) });
  const { ms, ofServer } = firstTokenTime(record);
  return t(ofServer ? "lanes.label-unstreamed" : "lanes.label-done", { name, count: countText(record), time: duration(ms) });
}

export function createLanes({ shared, effects, getPalette, setFocus, onUnfold, onOpen }) {
  const list = byId("lane-list");
  const ticks = byId("lane-ticks");
  const empty = byId("lanes-empty");
  const axisRow = byId("lane-axis");
  const unfold = byId("unfold");
  const treeStage = byId("tree-stage");
  const rows = new Map();
  let axis = { segments: [], length: 0 };
  let drawn = {};
  let cursor = { id: null, index: 0 };

  unfold.addEventListener("click", onUnfold);
  list.addEventListener("pointermove", (event) => {
    const row = rowOf(event.target);
    if (row === null || !(event.target instanceof HTMLCanvasElement)) return setFocus(null);
    const index = indexAt(axis, event.offsetX);
    if (index === null || index >= row.table.state.length) return setFocus(null);
    return point(row, index, event.clientX, event.clientY);
  });
  list.addEventListener("pointerleave", () => setFocus(null));
  list.addEventListener("focusout", () => setFocus(null));
  list.addEventListener("keydown", onKey);
  list.addEventListener("click", (event) => open(rowOf(event.target)));

  function rowOf(node) {
    return rows.get(node.closest?.(".lane")?.dataset.request) ?? null;
  }

  function point(row, index, x, y) {
    const { record, table } = row;
    setFocus({ hash: table.hash[index], request: record.id, index, server: record.server, rank: record.rank, state: table.state[index], x, y });
  }

  function open(row) {
    if (row === null) return;
    setFocus(null);
    onOpen(row.record.id);
  }

  function onKey(event) {
    const row = rowOf(event.target);
    if (row === null) return;
    const moves = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const next = event.key === "ArrowUp" ? row.node.previousElementSibling : row.node.nextElementSibling;
      next?.focus();
    } else if (event.key in moves && row.table.state.length > 0) {
      const from = cursor.id === row.record.id ? cursor.index + moves[event.key] : 0;
      cursor = { id: row.record.id, index: Math.min(row.table.state.length - 1, Math.max(0, from)) };
      const { left, bottom } = row.canvas.getBoundingClientRect();
      point(row, cursor.index, left + spanOf(axis, cursor.index).x, bottom);
    } else if (event.key === "Enter") {
      open(row);
    } else if (event.key === "Escape") {
      setFocus(null);
    } else return;
    event.preventDefault();
  }

  function build(id) {
    const name = make("span", { class: "lane-name" }, make("b"), make("span", { dir: "auto" }));
    const canvas = make("canvas", { class: "lane-cells", "aria-hidden": "true" });
    const counted = make("span", { class: "lane-count" });
    const bar = make("span", { class: "bar" });
    const ms = make("span", { class: "ms" });
    const node = make(
      "li",
      { class: "lane", "data-request": id, "data-new": true, tabindex: "-1", "aria-describedby": "block-card" },
      name,
      canvas,
      counted,
      make("span", { class: "lane-time" }, make("span", { "aria-hidden": "true" }, bar), ms),
    );
    return { node, name, canvas, counted, bar, ms, record: null, table: NO_TABLE, drawn: null };
  }

  function drawText(row, record, longest) {
    const [number, label] = row.name.children;
    setText(number, requestName(record.id));
    setText(label, clip(record.label ?? (record.origin === "client" ? t("lanes.other-client") : record.endpoint), 60));
    setAttribute(row.name, "title", record.error ?? record.label);
    setText(row.counted, countText(record));
    const { ms, ofServer } = firstTokenTime(record);
    setText(row.ms, duration(ms));
    setAttribute(row.ms, "title", ofServer ? t("lanes.ttft-engine") : null);
    setAttribute(row.ms, "data-of-server", ofServer);
    setStyle(row.bar, "width", `${ms === null ? 0 : Math.max(2, (100 * ms) / longest)}%`);
    const { node } = row;
    setAttribute(node, "aria-label", laneLabel(record));
    setAttribute(node, "data-warmth", warmth(record));
    setAttribute(node, "data-outcome", record.outcome);
    setAttribute(node, "data-running", isRunning(record));
    setAttribute(node, "data-failed", record.outcome !== null && record.outcome !== "ok");
    setAttribute(node, "data-reused-blocks", record.reused_blocks);
    setAttribute(node, "data-prompt-blocks", record.prompt_blocks);
    setAttribute(node, "data-cached-tokens", record.cached_tokens);
  }

  function drawTicks(pitch) {
    setChildren(
      ticks,
      ticksOf(axis, pitch).map(({ x, text }) => {
        const node = make("span", {}, text);
        node.style.left = `${x}px`;
        return node;
      }),
    );
  }

  function drawCells(row, scene) {
    const { canvas } = row;
    const scale = window.devicePixelRatio || 1;
    const width = Math.round(scene.width * scale);
    const height = Math.round(scene.height * scale);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    drawLane(context, { ...scene, request: row.record.id, table: row.table });
  }

  /** Text, order and axis: only when the requests, the room or the colours changed. */
  function drawRows(state, ui, kept, width) {
    const shown = kept.slice(0, MAX_LANES);
    axis = shared.layout(shown.map(({ table }) => (table ?? NO_TABLE).state), width, !ui.unfolded);
    const longest = Math.max(...shown.map(({ record }) => firstTokenTime(record).ms ?? 0), 1);
    const ids = new Set(shown.map(({ record }) => record.id));
    for (const id of rows.keys()) if (!ids.has(id)) rows.delete(id);
    const nodes = shown.map(({ record, table }) => {
      let row = rows.get(record.id);
      if (!row) rows.set(record.id, (row = build(record.id)));
      if (row.record !== record || drawn.longest !== longest || drawn.paint !== ui.paint) drawText(row, record, longest);
      Object.assign(row, { record, table: table ?? NO_TABLE });
      return row.node;
    });
    nodes.forEach((node, i) => setAttribute(node, "tabindex", i === 0 ? "0" : "-1"));
    setChildren(list, nodes);
    Object.assign(drawn, { longest, paint: ui.paint });
    drawTicks(64);
    setHidden(empty, shown.length > 0);
    setHidden(axisRow, shown.length === 0);
    const foldable = ui.unfolded || axis.segments.some((segment) => segment.kind === "fold");
    setHidden(unfold, !foldable);
    setText(unfold, t(ui.unfolded ? "lanes.fold" : "lanes.unfold"));
    const size = primaryServer(state)?.block_size ?? null;
    setText(byId("lanes-block"), size === null ? t("lanes.block") : t("lanes.block-of", { tokens: t("unit.tokens", { n: size }) }));
  }

  return (state, ui, now) => {
    const kept = requestRows(state);
    // Without a request there are no ticks to measure; the tree's stage is as wide.
    const width = ticks.clientWidth || treeStage.clientWidth || drawn.width || 0;
    const inputs = [kept, width, ui.paint, ui.unfolded, primaryServer(state)?.block_size, shared.tree];
    const anew = !drawn.inputs || inputs.some((input, i) => input !== drawn.inputs[i]);
    if (anew) drawRows(state, ui, kept, width);
    const busy = effects.busy(now);
    if (anew || busy || drawn.busy || drawn.focus !== ui.focus) {
      const height = rows.values().next().value?.canvas.clientHeight || 22;
      const focusHash = ui.focus?.hash ?? null;
      const scene = { axis, width, height, palette: getPalette(), focusHash, effects, now, still: ui.still };
      for (const row of rows.values()) {
        const focusIndex = ui.focus?.request === row.record.id ? ui.focus.index : null;
        const moving = busy && effects.moves(row.record.id);
        const seen = [row.table, axis, width, height, ui.paint, focusHash, focusIndex, moving];
        if (!moving && row.drawn !== null && seen.every((input, i) => input === row.drawn[i])) continue;
        row.drawn = seen;
        drawCells(row, { ...scene, focusIndex });
      }
    }
    drawn = { ...drawn, inputs, busy, focus: ui.focus, width };
    return effects.wait(now, ui);
  };
}
