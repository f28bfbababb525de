/** What moves in the cache picture: reuse, births, evictions and the ring of what is pointed at, as functions of time. */

/** Up to so many places, a line marks where a chain or a branch begins. */
const MARKED = 8192;

export function createOverlay(canvas) {
  const context = canvas.getContext("2d");
  const marks = document.createElement("canvas");
  const ink = marks.getContext("2d");
  /** Places that a block just left: slot to its hash. */
  const ghosts = new Map();
  let drawn = {};

  function forget() {
    ghosts.clear();
  }

  function evicted(slot, hash) {
    ghosts.set(slot, hash);
  }

  /**
   * Draws where something moves or moved just before; true while something still will. scene.picture changes with every
   * redraw of the cells below; what stands still on them is drawn once for each and copied from then on.
   */
  function draw(scene) {
    const { effects, focus, now } = scene;
    const busy = effects.busy(now);
    for (const [slot, hash] of ghosts) {
      if (scene.placement.hashAt[slot] !== null || effects.at(hash, now)?.kind !== "removed") ghosts.delete(slot);
    }
    const anew = drawn.picture !== scene.picture;
    if (!busy && !drawn.busy && !anew && drawn.focus === focus) return false;
    drawn = { busy, focus, picture: scene.picture };
    const scale = window.devicePixelRatio || 1;
    const width = Math.round(scene.width * scale);
    const height = Math.round(scene.height * scale);
    for (const each of [canvas, marks]) {
      if (each.width !== width || each.height !== height) Object.assign(each, { width, height });
    }
    if (anew) drawMarks(scene, scale);
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, scene.width, scene.height);
    context.drawImage(marks, 0, 0, scene.width, scene.height);
    if (busy) drawEffects(scene);
    drawFocus(scene);
    return busy;
  }

  function boxOf({ width, height, grid }, slot, grow = 0) {
    const w = width / grid.columns;
    const h = height / grid.rows;
    const gap = w > 4 ? 0.75 : 0;
    return [
      (slot % grid.columns) * w + gap - grow,
      Math.floor(slot / grid.columns) * h + gap - grow,
      w - 2 * gap + 2 * grow,
      h - 2 * gap + 2 * grow,
    ];
  }

  /** What stands still on the cells: where chains and branches begin and, on large cells, positions in the prompt. */
  function drawMarks(scene, scale) {
    const { placement, blocks, palette } = scene;
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, scene.width, scene.height);
    if (placement.capacity > MARKED) return;
    const [, , width, height] = boxOf(scene, 0);
    const numbered = width >= 20 * palette.scale && height >= 14 * palette.scale;
    Object.assign(ink, { font: `${10 * palette.scale}px ${palette.font}`, textAlign: "center", textBaseline: "middle" });
    placement.hashAt.forEach((hash, slot) => {
      const block = hash === null ? undefined : blocks.get(hash);
      if (block === undefined) return;
      if (numbered && block.depth !== null) writeNumber(scene, slot, block);
      if (block.parent !== null && placement.hashAt[slot - 1] === block.parent) return;
      const [x, y, , tall] = boxOf(scene, slot);
      ink.fillStyle = block.parent === null ? palette.text : palette.muted;
      ink.fillRect(x - 0.75, y, block.parent === null ? 3 : 1.5, tall);
    });
  }

  /** Along a chain the numbers count up. */
  function writeNumber(scene, slot, block) {
    const [x, y, width, height] = boxOf(scene, slot);
    ink.fillStyle = scene.palette[scene.inkOf(block.hash)];
    ink.fillText(String(block.depth + 1), x + width / 2, y + height / 2 + 0.5);
  }

  function drawEffects(scene) {
    const { effects, placement, palette, now, still } = scene;
    for (const hash of effects.hashes()) {
      const slot = placement.slotOf.get(hash);
      const effect = slot === undefined ? null : effects.at(hash, now, { still });
      if (effect === null || effect.kind === "removed") continue;
      if (effect.kind === "unborn") {
        context.globalAlpha = 1;
        context.fillStyle = palette["cell-empty"];
        context.fillRect(...boxOf(scene, slot, 0.5));
        continue;
      }
      const reused = effect.kind === "reused";
      context.globalAlpha = effect.strength;
      context.fillStyle = reused ? palette.reused : palette["computed-ink"];
      context.fillRect(...boxOf(scene, slot));
      if (reused) {
        context.lineWidth = 1.5;
        context.strokeStyle = palette.text;
        context.strokeRect(...boxOf(scene, slot, effect.strength * 1.5));
      }
    }
    context.fillStyle = palette.evicted;
    for (const [slot, hash] of ghosts) {
      context.globalAlpha = effects.at(hash, now, { still }).strength;
      context.fillRect(...boxOf(scene, slot));
    }
    context.globalAlpha = 1;
  }

  /** The block that is pointed at, and the chain of blocks before it that it depends on. */
  function drawFocus(scene) {
    const { focus, placement, blocks, palette } = scene;
    if (!focus?.hash) return;
    context.strokeStyle = palette.text;
    context.lineWidth = 1;
    let parent = blocks.get(focus.hash)?.parent ?? null;
    for (let steps = 0; parent !== null && steps < 100_000; steps++) {
      const slot = placement.slotOf.get(parent);
      if (slot !== undefined) context.strokeRect(...boxOf(scene, slot, -0.25));
      parent = blocks.get(parent)?.parent ?? null;
    }
    const slot = placement.slotOf.get(focus.hash);
    if (slot === undefined) return;
    context.lineWidth = 3;
    context.strokeRect(...boxOf(scene, slot, 2));
  }

  return { draw, evicted, forget };
}
