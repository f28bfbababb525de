/** What the numbers ask of the dashboard: move the mark, the doctor's report, the fit. */

import { clock } from "../../format.js";
import { t } from "../../words.js";

/** `set(fields)` changes the page's own state, `getUi()` is it; `post` and `getJson` as in api.js. */
export function createNumbersActions({ set, getUi, post, getJson }) {
  return {
    async mark() {
      try {
        await post("api/mark");
        set({ marking: t("rates.marked", { time: clock(Date.now()) }) });
      } catch (error) {
        set({ marking: t("rates.not-marked", { why: error.message }) });
      }
    },
    /** What can't be asked now is asked again with the next answer; the line that was drawn stays. */
    async askFit(server) {
      const query = server === undefined ? "" : `?${new URLSearchParams({ server })}`;
      const fit = await getJson(`api/ttft_fit${query}`).catch(() => null);
      if (fit !== null) set({ fit });
    },
    async askDoctor() {
      if (getUi().doctor.phase === "asking") return;
      set({ doctor: { ...getUi().doctor, phase: "asking", error: null } });
      try {
        const report = await getJson("api/doctor");
        set({ doctor: { phase: "done", report, error: null } });
      } catch (error) {
        set({ doctor: { ...getUi().doctor, phase: "done", error: error.message } });
      }
    },
  };
}
