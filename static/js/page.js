/**
 * What all of the page stands on: what came from the dashboard, what the page itself is doing, and the one frame that
 * draws both. Knows no view.
 */

import { getJson } from "./api.js";
import { createChoice } from "./chosen_server.js";
import { Effects } from "./effects.js";
import { createFrame } from "./frame.js";
import { readPalette } from "./palette.js";
import { createRedaction, isRedacted, redactAnswer } from "./redact.js";
import { remembered } from "./remembered.js";
import { createStore } from "./store.js";
import { createTimeMachine } from "./time_machine.js";
import { change, initialUi } from "./ui_state.js";

/** onBroken(error): an event can't be applied, or what came before it can't be shown. */
export function createPage({ onBroken }) {
  const store = createStore();
  const effects = new Effects();
  const redaction = createRedaction();
  const choice = createChoice();
  const stillMotion = window.matchMedia("(prefers-reduced-motion: reduce)");
  const views = [];
  let ui = change(initialUi(), {
    still: stillMotion.matches,
    redacted: remembered.get("redacted") === "on",
    server: remembered.get("server"),
  });
  let palette = readPalette();
  let shown = store.state;

  const time = createTimeMachine({
    store,
    effects,
    onChange: (replay) => set({ replay }),
    invalidate,
    choose: (state) => choice.of(state, ui.server),
  });
  const frame = createFrame({ views, prepare, onError: (error) => console.error(error) });

  function invalidate() {
    frame.invalidate();
  }

  function set(fields) {
    ui = change(ui, fields);
    document.body.dataset.link = ui.connection;
    invalidate();
  }

  /** Sizes or words are others: everything is drawn anew. */
  function redraw() {
    set({ paint: ui.paint + 1 });
  }

  /** Colours are others. */
  function repaint() {
    palette = readPalette();
    redraw();
  }

  const hidesText = () => isRedacted(store.state, ui);

  function prepare(now) {
    let state = choice.of(store.state, ui.server);
    try {
      state = time.show(now, ui);
    } catch (error) {
      onBroken(error);
    }
    const { replay } = time;
    if (ui.replay !== replay.now) ui = change(ui, { replay: replay.now });
    shown = hidesText() ? redaction.state(state) : state;
    return { state: shown, ui: hidesText() ? change(ui, { run: redaction.run(ui.run) }) : ui };
  }

  stillMotion.addEventListener("change", () => set({ still: stillMotion.matches }));

  return {
    effects,
    time,
    /** The state as it is now, and the one that the views drew last: of now, or of a moment of the past. */
    getState: () => store.state,
    getShown: () => shown,
    getUi: () => ui,
    getPalette: () => palette,
    set,
    invalidate,
    redraw,
    repaint,
    hidesText,
    /** As api.getJson, without the text of prompts and answers where that is hidden. */
    async getJson(path, options) {
      const answer = await getJson(path, options);
      return hidesText() ? redactAnswer(answer) : answer;
    },
    /** A way of sending after which the page shows what happens now, where what was sent is to be seen. */
    atNow: (send) => (request) => {
      time.replay.live();
      // Requests go to the first server.
      if (ui.server !== null) set({ server: null, focus: null, zoom: null });
      return send(request);
    },
    /** Takes up an event that came as `text`. */
    take(event, text) {
      try {
        time.take(event, text, performance.now());
      } catch (error) {
        onBroken(error);
      }
      frame.soon();
    },
    /** Draws these views from now on, in this order. */
    show(added) {
      views.push(...added);
      invalidate();
    },
    drawAtOnce: () => frame.draw({ whole: true }),
  };
}
