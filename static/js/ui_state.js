/**
 * What the page itself is doing, as plain data: nothing here comes from the server. `change` is a new state with some
 * fields replaced; views compare fields by identity.
 */

import { IDLE } from "./composer.js";
import { LIVE } from "./replay.js";
import { CLOSED } from "./tour.js";
import { UNASKED } from "./why/asking.js";
import { UNEXAMINED } from "./why/examining.js";
import { UNFIXED } from "./why/fixing.js";
import { CLOSED as CLOSED_MICROSCOPE } from "./why/microscope.js";

export function initialUi() {
  return {
    /** connecting, live, lost; `mismatch`: the server speaks a protocol that this page doesn't read. */
    connection: "connecting",
    mismatch: null,
    /** Raised whenever colours or sizes changed, so that everything is drawn anew. */
    paint: 0,
    /** The server that is shown where there are several: its id, or null for the first. */
    server: null,
    /** While the page is printed: what is out of sight is drawn too. */
    printing: false,
    still: false,
    /** Whether the text of prompts and answers is hidden here. */
    redacted: false,
    /** Where on the timeline the page is. */
    replay: LIVE,
    /** The block that is pointed at: {hash, request, index, server, rank, x, y} or null. */
    focus: null,
    /** The answer about it: {key, block, error} or null. */
    card: null,
    wholePool: false,
    unfolded: false,
    /** The branch of the tree that has all the room: the hash of a block in it, or null. `words`: its blocks' words. */
    zoom: null,
    words: false,
    /** What the first-token chart has on its x axis: "order" or "computed". */
    ttftBy: "order",
    /** The tab of the numbers that is open; what is said of the mark after its button; what the doctor answered. */
    numbers: "rates",
    marking: null,
    /** The answer of /api/ttft_fit: {fit, missing}; null before the first. */
    fit: null,
    doctor: { phase: "idle", report: null, error: null },
    run: IDLE,
    /** What is known of the prompt in the form before it is sent. */
    forecast: UNASKED,
    /** The request that the microscope shows: {id, phase, start, answer, error}. */
    microscope: CLOSED_MICROSCOPE,
    /** What keeps the newest request of the form from sharing, and what mending it gained. */
    fix: UNFIXED,
    /** The prompt doctor's list under examination. */
    prompts: UNEXAMINED,
    tour: CLOSED,
  };
}

export const change = (ui, fields) => ({ ...ui, ...fields });
