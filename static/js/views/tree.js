/**
 * The prefix tree: which prefixes are resident, on the axis of the lanes. Two views: the first, before the lanes, says
 * what the axis must hold; the second, after them, draws.
 */

import { indexAt } from "../axis.js";
import { byId, make, setAttribute, setChildren, setHidden, setStyle, setText } from "../dom.js";
import { throttle } from "../frame.js";
import { createGhosts } from "../ghosts.js";
import { holdersByHash, pool, primaryServer, residentBlocks, runningHashes } from "../selectors.js";
import { buildTree, edgesOf, fitTree, pathTo, rowAt } from "../tree_layout.js";
import { t } from "../words.js";
import { drawTree, drawTreeEffects, drawTreeFocus, spanOfRun } from "./tree_canvas.js";

const INTERVAL_MS = 250;
const NO_TREE = { rows: [], height: 0, chains: 0, blocks: 0 };
/** Words are asked for at most for so many runs at a time. */
const MAX_WORDS = 16;
/** What a tree's size takes of its column; the rest is for what is said right of a leaf. */
const SIZE_ROOM = 88;

export function createTree({ shared, effects, getPalette, setFocus, words, onZoom, onWords }) {
  const stage = byId("tree-stage");
  const canvas = byId("tree-canvas");
  const context = canvas.getContext("2d");
  const sizes = byId("tree-sizes");
  const still = document.createElement("canvas");
  const ghosts = createGhosts();
  const gate = throttle(INTERVAL_MS);
  let tree = buildTree(new Map(), { holders: new Map(), running: new Set() });
  let fitted = NO_TREE;
  let rows = new Map();
  let zoom = null;
  let blocks = new Map();
  let ranks = { server: null, rank: 0 };
  let version = 0;
  let before = {};
  let drawn = {};
  let cursor = null;

  byId("tree-words").addEventListener("click", onWords);
  stage.addEventListener("pointermove", (event) => {
    const found = under(event);
    if (found === null) return setFocus(null);
    return point(found.run.hashes[found.at], event.clientX, event.clientY);
  });
  stage.addEventListener("pointerleave", () => setFocus(null));
  stage.addEventListener("blur", () => setFocus(null));
  stage.addEventListener("click", (event) => {
    const found = under(event);
    if (found !== null) onZoom(found.run === zoom ? null : found.run.hashes[0]);
  });
  stage.addEventListener("keydown", onKey);

  /** {run, at} below the pointer: `at` counts within the run. */
  function under(event) {
    const box = stage.getBoundingClientRect();
    const index = indexAt(shared.axis, event.clientX - box.left);
    const row = index === null ? null : rowAt(fitted, index, event.clientY - box.top);
    return row === null ? null : { run: row.run, at: index - row.run.depth };
  }

  function point(hash, x, y) {
    cursor = hash;
    const rank = blocks.get(hash)?.rank ?? ranks.rank;
    setFocus({ hash, request: null, index: null, server: ranks.server, rank, state: null, x, y });
  }

  /** Left and right along a chain, from run to run; up and down from row to row. */
  function onKey(event) {
    const runs = fitted.rows.filter((row) => !row.context).map(({ run }) => run);
    const here = tree.runOf.get(cursor);
    const at = runs.indexOf(here);
    let next = null;
    if (event.key === "Escape") return here !== undefined && zoom !== null ? onZoom(null) : setFocus(null);
    if (event.key === "Enter" && at >= 0) onZoom(here === zoom ? null : here.hashes[0]);
    else if (!event.key.startsWith("Arrow")) return undefined;
    else if (at < 0) next = runs[0];
    else if (event.key === "ArrowLeft") next = here.parent ?? here;
    else if (event.key === "ArrowRight") next = here.children.find((child) => rows.has(child)) ?? here;
    else next = runs[Math.min(runs.length - 1, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1)))];
    event.preventDefault();
    if (next === null || next === undefined) return undefined;
    const box = stage.getBoundingClientRect();
    const row = rows.get(next);
    return point(next.hashes[0], box.left + spanOfRun(shared.axis, next).x, box.top + row.y + row.height);
  }

  function rowOf(hash) {
    const run = tree.runOf.get(hash);
    const row = run === undefined ? undefined : rows.get(run);
    return row === undefined ? null : { ...row, at: run.hashes.indexOf(hash) };
  }

  function rebuild(state, ui, now, height) {
    const server = primaryServer(state);
    const generation = `${state.hello?.instance}|${server?.id}`;
    ranks = { server: server?.id ?? null, rank: [...Object.values(state.caches)].find((cache) => cache.server === server?.id)?.rank ?? 0 };
    blocks = residentBlocks(state);
    ghosts.follow(blocks, now, { fresh: generation !== before.generation });
    before.generation = generation;
    tree = buildTree(blocks, { holders: holdersByHash(state), running: runningHashes(state), ghosts: ghosts.all });
    zoom = ui.zoom === null ? null : (tree.runOf.get(ui.zoom) ?? null);
    fitted = fitTree(tree, height, { zoom });
    rows = new Map(fitted.rows.map((row) => [row.run, row]));
    version += 1;
    shared.needs(edgesOf(fitted));
  }

  /** Before the lanes: the tree anew, at most four times a second, and what it needs of the axis. */
  function prepare(state, ui, now) {
    const height = stage.clientHeight;
    if (height === 0) return null;
    const inputs = [state.caches, state.requests, state.servers, ui.zoom, height];
    const changed = !before.inputs || inputs.some((input, i) => input !== before.inputs[i]);
    if (!changed && ghosts.all.size === 0) return null;
    const wait = before.inputs && before.inputs[3] !== ui.zoom ? 0 : gate.wait(now);
    if (wait > 0) return wait;
    const begun = performance.now();
    rebuild(state, ui, effects.time(now), height);
    before.inputs = inputs;
    gate.drawn(now, performance.now() - begun);
    return ghosts.all.size > 0 ? INTERVAL_MS : null;
  }

  function drawStill(state, ui, scene) {
    const scale = window.devicePixelRatio || 1;
    const size = { width: Math.round(scene.width * scale), height: Math.round(scene.height * scale) };
    for (const each of [canvas, still]) if (each.width !== size.width || each.height !== size.height) Object.assign(each, size);
    setStyle(canvas, "width", `${scene.width}px`);
    const ink = still.getContext("2d");
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    // A tree's first words stand at its left; only where there is no room for them they stand in it.
    const named = byId("tree-names").clientWidth > 0;
    const inside = new Map([...scene.words].filter(([run]) => !named || (run.parent !== null && run !== zoom)));
    drawTree(ink, { ...scene, words: inside });
    drawWords(state, ui, scene.words);
  }

  /** Names of trees at the left, their sizes at the right, the breadcrumb and what is left out. */
  function drawWords(state, ui, found) {
    const roots = fitted.rows.filter(({ run, context: isContext, height }) => (zoom === null ? run.parent === null : run === zoom && !isContext) && height >= 13);
    const place = (node, { y, height }) => {
      setStyle(node, "top", `${(y + height / 2).toFixed(1)}px`);
      return node;
    };
    const text = (row, content) => place(make("li", { dir: "auto" }, content), row);
    setChildren(byId("tree-names"), roots.map((row) => text(row, found.has(row.run) ? t("tree.quoted", { words: found.get(row.run) }) : nameOf(row.run))));
    setChildren(sizes, roots.map((row) => text(row, row.run.gone_ms === null ? t("unit.blocks", { n: row.run.total }) : t("tree.evicted"))));
    drawCrumbs();
    const parts = pool(state);
    const empty = byId("tree-empty");
    setHidden(empty, fitted.rows.length > 0);
    setText(empty, parts.reason === null ? t("tree.empty") : t("cache.nothing", { reason: t(`reason.${parts.reason}`) }));
    setText(byId("tree-foot"), leftOut(tree, fitted, zoom));
    setAttribute(stage, "aria-label", stageLabel(tree, fitted));
    setAttribute(stage, "data-chains", fitted.chains);
    setAttribute(stage, "data-runs", fitted.rows.length);
    const button = byId("tree-words");
    setHidden(button, fitted.rows.length === 0);
    setText(button, t(ui.words ? "tree.hide-words" : "tree.show-words"));
  }

  function drawCrumbs() {
    const nav = byId("tree-crumbs");
    setHidden(nav, zoom === null);
    setHidden(byId("tree-lead"), zoom !== null);
    if (zoom === null) return setChildren(nav.firstElementChild, []);
    const path = pathTo(zoom);
    const crumb = (label, hash, current) => {
      if (current) return make("li", { "aria-current": "true" }, label);
      const button = make("button", { type: "button", class: "link" }, label);
      button.addEventListener("click", () => onZoom(hash));
      return make("li", {}, button);
    };
    const crumbs = path.map((run, i) => crumb(rangeOf(run), run.hashes[0], i === path.length - 1));
    if (crumbs.length > 4) crumbs.splice(1, crumbs.length - 3, make("li", {}, "…"));
    return setChildren(nav.firstElementChild, [crumb(t("tree.all"), null, false), ...crumbs]);
  }

  function askWords(ui) {
    const found = new Map();
    if (!ui.words) return found;
    const has = ({ height, context: isContext, run }) => height >= 13 && !isContext && run.gone_ms === null;
    const wanted = fitted.rows.filter((row) => has(row) && (row.run.parent === null || spanOfRun(shared.axis, row.run).width > 150));
    for (const { run } of wanted.slice(0, MAX_WORDS)) {
      const text = words.get({ hash: run.hashes[0], server: ranks.server, rank: blocks.get(run.hashes[0])?.rank ?? ranks.rank });
      if (text !== null) found.set(run, text);
    }
    return found;
  }

  /** After the lanes: what is drawn on their axis. */
  function draw(state, ui, now) {
    const axisWidth = stage.clientWidth;
    const height = stage.clientHeight;
    if (axisWidth === 0 || height === 0) return null;
    const palette = getPalette();
    const width = axisWidth + Math.max(0, sizes.clientWidth - SIZE_ROOM * palette.scale);
    const focusRow = ui.focus?.hash ? rowOf(ui.focus.hash) : null;
    const fading = ghosts.all.size > 0 ? Math.floor(effects.time(now) / INTERVAL_MS) : 0;
    const inputs = [version, shared.axis, width, height, ui.paint, ui.words, words.version(), focusRow === null ? null : ui.focus.hash, fading, state.hello];
    const anew = !drawn.inputs || inputs.some((input, i) => input !== drawn.inputs[i]);
    const busy = effects.busy(now);
    if (!anew && !busy && !drawn.busy) return null;
    const lit = focusRow === null ? null : new Set(pathTo(focusRow.run));
    const scene = { axis: shared.axis, fitted, shown: rows, width, height, palette, holders: holdersByHash(state), lit, effects, now, still: ui.still };
    if (anew) drawStill(state, ui, { ...scene, now: effects.time(now), words: askWords(ui) });
    const scale = window.devicePixelRatio || 1;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(still, 0, 0);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    if (busy) drawTreeEffects(context, scene, rowOf);
    if (focusRow !== null) drawTreeFocus(context, scene, focusRow);
    drawn = { inputs, busy };
    return effects.wait(now, ui);
  }

  return { prepare, draw };
}

/** "3 requests" that share a tree's trunk. Pure. */
function nameOf(run) {
  return run.share === 0 ? t("tree.older") : t("unit.requests", { n: run.share });
}

/** "blocks 15–17", 1-based as in sentences. Pure. */
function rangeOf(run) {
  const first = run.depth + 1;
  const last = run.depth + run.hashes.length;
  return first === last ? t("tree.range-one", { first }) : t("tree.range", { first, last });
}

/** What isn't drawn, or "". Pure. */
function leftOut(tree, fitted, zoom) {
  if (fitted.rows.length === 0) return "";
  if (zoom !== null) return t("tree.zoomed", { range: rangeOf(zoom), blocks: t("unit.blocks", { n: zoom.total }) });
  if (fitted.chains >= tree.chains) return "";
  const blocks = t("unit.blocks", { n: tree.blocks - fitted.blocks });
  const chains = t("unit.chains", { n: tree.chains });
  return t("tree.left-out", { drawn: fitted.chains, chains, blocks, others: tree.chains - fitted.chains });
}

/** What a screen reader says of it. Pure. */
function stageLabel(tree, fitted) {
  if (fitted.rows.length === 0) return t("tree.label-empty");
  const [largest] = [...tree.roots].sort((a, b) => b.share * b.hashes.length - a.share * a.hashes.length);
  return t("tree.label", {
    chains: t("unit.chains", { n: tree.chains }),
    trees: t("unit.trees", { n: tree.roots.length }),
    blocks: t("unit.blocks", { n: largest.hashes.length }),
    requests: t("unit.requests", { n: largest.share }),
  });
}
