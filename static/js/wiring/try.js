/** "Try it" and the tour, which sends through it. */

import { post, postJson, streamChat } from "../api.js";
import { createComposer } from "../composer.js";
import { createTour } from "../tour.js";
import { createScenario } from "../views/scenario.js";
import { createTourBar } from "../views/tour.js";
import { createTry } from "../views/try.js";
import { createAsker } from "../why/asking.js";
import { bodyKey } from "../why/forecast.js";
import { createSentBook } from "../why/sent_book.js";
import { language } from "../words.js";
import { focusOn } from "./focus.js";

/** {views, actions, asker, book, draft}: `asker` forecasts what is typed, `book` keeps what was sent. */
export function wireTry({ set, getState, atNow }) {
  const asker = createAsker({
    ask: (body, signal) => postJson("api/forecast", body, { signal }),
    onChange: (forecast) => set({ forecast }),
  });
  const book = createSentBook({ send: streamChat, forecastOf: (body) => asker.take(bodyKey(body)) });
  const send = atNow(book.send);
  const composer = createComposer({ send, onChange: (run) => set({ run }) });
  const form = createTry({ composer, getState });
  const scenario = (act) => post(`api/scenario/${act}`).catch((error) => console.warn(error.message));
  const tour = createTour({
    composer,
    language,
    send,
    getState,
    show: form.show,
    onChange: (now) => set({ tour: now }),
    onStart: () => getState().scenario?.running && scenario("stop"),
  });
  return {
    asker,
    book,
    draft: form.draft,
    views: [
      createScenario({ onStop: () => scenario("stop"), onStart: () => scenario("start") }),
      createTourBar({ tour }),
      form.view,
    ],
    actions: { try: focusOn("#system-prompt"), tourNext: tour.next, tourBack: tour.back, tourReset: tour.reset },
  };
}
