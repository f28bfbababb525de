/** Puts the page together: connection to store, store to views, views into one frame. The only module that knows all. */

import { blockPath, getJson, post, postJson, postLines, streamChat } from "./api.js";
import { createBlockWords } from "./block_words.js";
import { createSight } from "./charts/chart.js";
import { createComposer, freshSalt } from "./composer.js";
import { connect, createPosition } from "./connection.js";
import { Effects } from "./effects.js";
import { createFrame } from "./frame.js";
import { readPalette } from "./palette.js";
import { decodeMessage } from "./protocol.js";
import { createRedaction, redactAnswer } from "./redact.js";
import { remembered } from "./remembered.js";
import { createSharedAxis } from "./shared_axis.js";
import { createStore } from "./store.js";
import { createTimeMachine } from "./time_machine.js";
import { createTour } from "./tour.js";
import { change, initialUi } from "./ui_state.js";
import { createCache } from "./views/cache.js";
import { createCard, createCardLoader } from "./views/card.js";
import { createChartPanels } from "./views/chart_panels.js";
import { createFigures } from "./views/figures.js";
import { createGlossary } from "./views/glossary.js";
import { createInfo } from "./views/info.js";
import { createKeys } from "./views/keys.js";
import { createLanes } from "./views/lanes.js";
import { createNotices } from "./views/notices.js";
import { createNumbers } from "./views/numbers/numbers.js";
import { createRedactSwitch, isRedacted } from "./views/redacted.js";
import { createScenario } from "./views/scenario.js";
import { createSteps } from "./views/steps.js";
import { createStrip } from "./views/strip.js";
import { createTimelineView } from "./views/timeline.js";
import { createTree } from "./views/tree.js";
import { createTourBar } from "./views/tour.js";
import { createTry } from "./views/try.js";
import { createCauses } from "./views/why/causes.js";
import { createFix } from "./views/why/fix.js";
import { createMicroscope } from "./views/why/microscope.js";
import { createPrompts } from "./views/why/prompts.js";
import { createRuler } from "./views/why/ruler.js";
import { createVerdictLinks } from "./views/why/verdict.js";
import { createAsker } from "./why/asking.js";
import { createExamining } from "./why/examining.js";
import { createFixing } from "./why/fixing.js";
import { bodyKey } from "./why/forecast.js";
import { createSentBook } from "./why/sent_book.js";
import { LANGUAGES, firstLanguage, language, translate, useLanguage } from "./words.js";

const PRINT_ROUNDS = 6;

function start() {
  speak(firstLanguage(remembered.get("language"), navigator.languages));
  const store = createStore();
  const effects = new Effects();
  const stillMotion = window.matchMedia("(prefers-reduced-motion: reduce)");
  let ui = change(initialUi(), { still: stillMotion.matches, redacted: remembered.get("redacted") === "on" });
  let palette = readPalette();
  /** What the views drew last: of now, or of a moment of the past. */
  let shownState = store.state;

  function set(fields) {
    ui = change(ui, fields);
    document.body.dataset.link = ui.connection;
    frame.invalidate();
  }

  function switchLanguage() {
    speak(language() === "en" ? "zh" : "en");
    remembered.set("language", language());
    set({ paint: ui.paint + 1 });
  }

  function repaint() {
    palette = readPalette();
    set({ paint: ui.paint + 1 });
  }

  const time = createTimeMachine({
    store,
    effects,
    onChange: (replay) => set({ replay }),
    invalidate: () => frame.invalidate(),
  });
  const { replay } = time;
  const atNow = (act) => () => act(performance.now());

  const asker = createAsker({
    ask: (body, signal) => postJson("api/forecast", body, { signal }),
    onChange: (forecast) => set({ forecast }),
  });
  const book = createSentBook({ send: streamChat, forecastOf: (body) => asker.take(bodyKey(body)) });

  /** What is sent now is looked for in what happens now. */
  const nowBy = (way) => (request) => {
    replay.live();
    return way(request);
  };
  const send = nowBy(book.send);

  const redaction = createRedaction();
  const hidesText = () => isRedacted(store.state, ui);
  const readJson = async (path, options) => {
    const answer = await getJson(path, options);
    return hidesText() ? redactAnswer(answer) : answer;
  };

  /** What was fetched before is fetched again, in the other form. */
  function switchRedacted() {
    if (store.state.hello?.redact) return;
    for (const dialog of document.querySelectorAll("dialog:modal")) dialog.close();
    loader.forget();
    words.forget();
    set({ redacted: !ui.redacted, focus: null });
    remembered.set("redacted", ui.redacted ? "on" : "off");
  }

  const composer = createComposer({ send, onChange: (run) => set({ run }) });
  const loader = createCardLoader({
    load: (focus) => readJson(blockPath(focus)),
    onLoaded: () => frame.invalidate(),
  });

  function setFocus(focus) {
    if (focus === null && ui.focus === null) return;
    loader.want(focus?.quiet ? null : focus);
    set({ focus });
  }

  const getPalette = () => palette;
  const quietly = (promise) => promise.catch((error) => console.warn(error.message));
  const words = createBlockWords({ load: (block) => readJson(blockPath(block)), onLoaded: () => frame.invalidate() });
  const shared = createSharedAxis();
  const common = { effects, getPalette, setFocus };
  const tree = createTree({
    ...common,
    shared,
    words,
    onZoom: (zoom) => set({ zoom }),
    onWords: () => set({ words: !ui.words }),
  });
  const steps = createSteps({ getState: () => shownState, setFocus, invalidate: () => frame.invalidate() });
  const chosenRequest = () => document.activeElement?.closest?.("[data-request]")?.dataset.request ?? ui.focus?.request ?? null;
  const focusOn = (selector, options) => () => document.querySelector(selector)?.focus(options);
  const tryIt = createTry({ composer, getState: () => store.state });
  const stopScenario = () => quietly(post("api/scenario/stop"));
  const tour = createTour({
    composer,
    language,
    send,
    show: tryIt.show,
    getState: () => store.state,
    onChange: (now) => set({ tour: now }),
    onStart: () => store.state.scenario?.running && stopScenario(),
  });
  const glossary = createGlossary();
  const causes = createCauses();
  const microscope = createMicroscope({ getJson: readJson, set, causes });
  const fixing = createFixing({
    ask: async (requests, signal) => (hidesText() ? { breakers: [] } : postJson("api/remedy", requests, { signal })),
    send: nowBy(streamChat),
    salt: freshSalt,
    onChange: (fix) => set({ fix }),
  });
  const examining = createExamining({
    ask: (lines, options) => postLines("api/lint", lines, options),
    onChange: (prompts) => set({ prompts }),
  });
  const fix = createFix({ fixing, book, getState: () => store.state });
  const openMicroscope = (id) => id !== undefined && microscope.open(id);
  const keys = createKeys({
    store: remembered,
    actions: {
      try: focusOn("#system-prompt"),
      requests: focusOn(".lane-list .lane"),
      tree: focusOn("#tree-stage"),
      cache: focusOn("#cache-stage"),
      numbers: focusOn("#numbers-tabs [aria-selected=true]"),
      why: () => openMicroscope(chosenRequest() ?? store.state.requestOrder[0]),
      words: () => set({ words: !ui.words }),
      unfold: () => set({ unfolded: !ui.unfolded }),
      all: () => set({ zoom: null }),
      glossary: glossary.toggle,
      steps: () => steps.open(chosenRequest()),
      time: focusOn("#timeline-track", { preventScroll: true }),
      pause: atNow(replay.toggle),
      slower: atNow((now) => replay.faster(-1, now)),
      faster: atNow((now) => replay.faster(1, now)),
      live: replay.live,
      redact: switchRedacted,
      tourNext: tour.next,
      tourBack: tour.back,
      tourReset: tour.reset,
      theme: switchTheme,
      projector: switchProjector,
      language: switchLanguage,
    },
  });
  const views = [
    keys,
    glossary.view,
    causes.view,
    microscope.view,
    createInfo({ onTerm: glossary.open }),
    createRedactSwitch({ onSwitch: switchRedacted }),
    createStrip({ onTheme: switchTheme, onLanguage: switchLanguage }),
    createNotices(),
    createScenario({
      onStop: stopScenario,
      onStart: () => quietly(post("api/scenario/start")),
    }),
    createFigures(),
    createTourBar({ tour }),
    tryIt.view,
    fix.view,
    createPrompts({ examining, getState: () => store.state, onFix: fix.openFor }),
    createVerdictLinks({ book, onOpen: microscope.open, causes }),
    createRuler({ asker, draft: tryIt.draft, onTouch: () => frame.invalidate() }),
    tree.prepare,
    createLanes({ ...common, shared, onOpen: microscope.open, onUnfold: () => set({ unfolded: !ui.unfolded }) }),
    tree.draw,
    createCache({ ...common, onWhole: () => set({ wholePool: !ui.wholePool }) }),
    createCard({ loader }),
    steps.view,
    createTimelineView({ ...time, getPalette }),
    ...createNumbers({ set, getUi: () => ui, post, getJson }),
    ...createChartPanels({ getPalette, sight: createSight(() => frame.invalidate()), onFirstTokenBy: (ttftBy) => set({ ttftBy }) }),
  ];

  const position = createPosition();
  const frame = createFrame({
    views,
    prepare(now) {
      let state = store.state;
      try {
        state = time.show(now, ui);
      } catch (error) {
        beginAnew(error);
      }
      if (ui.replay !== replay.now) ui = change(ui, { replay: replay.now });
      shownState = hidesText() ? redaction.state(state) : state;
      return { state: shownState, ui: hidesText() ? change(ui, { run: redaction.run(ui.run) }) : ui };
    },
    onError: (error) => console.error(error),
  });

  /** Events that can't be applied leave no picture to go on from; a fresh snapshot does. */
  function beginAnew(error) {
    console.error(error);
    position.forget();
    link.restart();
  }

  function take(event, text) {
    try {
      time.take(event, text, performance.now());
    } catch (error) {
      beginAnew(error);
    }
    frame.invalidate();
  }

  const link = listen({ take, position, set, getUi: () => ui });
  printInLight((printing) => {
    set({ printing });
    repaint();
    // One round draws what its budget allows; a few draw everything.
    for (let round = 0; round < PRINT_ROUNDS; round++) frame.draw();
  });
  stillMotion.addEventListener("change", () => set({ still: stillMotion.matches }));
  new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme", "data-projector"] });
  new ResizeObserver(() => set({ paint: ui.paint + 1 })).observe(document.getElementById("main"));
  document.fonts?.ready.then(repaint);
  frame.invalidate();
}

/** Hands on what comes from the live socket. What can't be used is noted once a kind, and stops nothing. */
function listen({ take, position, set, getUi }) {
  const noted = new Set();
  return connect({
    base: document.baseURI,
    silence_ms: 2500 * (readConfig().heartbeat_s ?? 16),
    position: position.get,
    onState(connection) {
      if (getUi().connection !== connection) set({ connection });
    },
    onMessage(text) {
      let event;
      try {
        event = decodeMessage(text);
      } catch (error) {
        if (error.code === "version" && getUi().mismatch === null) set({ mismatch: error.message });
        if (!noted.has(error.message)) console.info(`Left out: ${error.message}`);
        noted.add(error.message);
        return;
      }
      if (event === null) return;
      position.follow(event);
      take(event, text);
    },
  });
}

/** What the server told the page in its one JSON script tag. */
function readConfig() {
  return JSON.parse(document.getElementById("config").textContent);
}

/** Puts the template's words into a language; the views follow when they are drawn. */
function speak(tag) {
  useLanguage(tag);
  document.documentElement.lang = LANGUAGES[tag].lang;
  translate(document);
}

function switchTheme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  remembered.set("theme", root.dataset.theme);
}

/** Paper is white: the page is printed in light colours, whatever it is shown in. */
function printInLight(redraw) {
  const root = document.documentElement;
  let shown = null;
  window.addEventListener("beforeprint", () => {
    shown = root.dataset.theme;
    root.dataset.theme = "light";
    redraw(true);
  });
  window.addEventListener("afterprint", () => {
    root.dataset.theme = shown ?? root.dataset.theme;
    redraw(false);
  });
}

function switchProjector() {
  const on = document.documentElement.toggleAttribute("data-projector");
  remembered.set("projector", on ? "on" : "off");
}

start();
