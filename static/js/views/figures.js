/** The headline figures, each with its window and its source right under it. Unknown is a dash with its reason. */

import { byId, setAttribute, setStyle, setText } from "../dom.js";
import { UNKNOWN, count, duration, percent } from "../format.js";
import { contradicted } from "../numbers/hit_rates.js";
import { coverageOf } from "../numbers/streams.js";
import { firstToken, lifetimeHitRate, pool, primaryServer } from "../selectors.js";
import { t } from "../words.js";

const parts = (id) =>
  Object.fromEntries([...byId(id).querySelectorAll("[data-part]")].map((node) => [node.dataset.part, node]));

const setShare = (node, ratio) => setStyle(node, "width", `${(100 * Math.min(1, Math.max(0, ratio ?? 0))).toFixed(2)}%`);

export function createFigures() {
  const hitRate = parts("figure-hit-rate");
  const ttft = parts("figure-ttft");
  const tokens = parts("figure-tokens");
  const poolParts = parts("figure-pool");
  let drawn = [];

  return (state, ui) => {
    const inputs = [state.rates, state.servers, state.requests, state.caches, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    drawHitRate(lifetimeHitRate(state), primaryServer(state));
    drawFirstToken(firstToken(state), primaryServer(state));
    drawPool(pool(state), primaryServer(state));
    return null;
  };

  function drawHitRate({ value, hit, query, reason }, server) {
    const doubtful = hit === 0 && contradicted(server);
    setText(hitRate.value, doubtful ? t("rates.doubtful", { rate: percent(value) }) : percent(value));
    setShare(hitRate.meter, value);
    setText(
      hitRate.source,
      reason === null ? t(doubtful ? "rates.doubtful-parts" : "figures.hit-source", { hit, query }) : t(`reason.${reason}`),
    );
    setText(tokens.value, value === null ? UNKNOWN : count(hit));
    setShare(tokens.meter, value);
    setAttribute(tokens.meter.parentElement, "data-empty", value === null);
    setText(
      tokens.source,
      reason === null ? t("figures.reused-source", { computed: query - hit, query }) : t(`reason.${reason}`),
    );
  }

  function drawFirstToken({ warm, cold }, server) {
    setText(ttft.warm, duration(warm.value));
    setText(ttft.cold, duration(cold.value));
    const longest = Math.max(warm.value ?? 0, cold.value ?? 0) || 1;
    setShare(ttft["warm-bar"], (warm.value ?? 0) / longest);
    setShare(ttft["cold-bar"], (cold.value ?? 0) / longest);
    const clock = t(server?.embedded ? "figures.clock-modelled" : "figures.clock");
    const known = warm.n + cold.n > 0;
    setText(
      ttft.source,
      known ? t("figures.ttft-source", { warm: warm.n, cold: cold.n, clock }) : t("figures.no-finished"),
    );
  }

  function drawPool({ total, resident, running, free, rest, evicted, reason }, server) {
    const atLeast = resident !== null && coverageOf(server) !== "complete";
    setText(poolParts.value, atLeast ? t("pool.at-least", { n: resident }) : count(resident));
    setText(poolParts.unit, total === null ? t("figures.cached") : t("figures.cached-of", { total }));
    setShare(poolParts.running, total ? (running ?? 0) / total : 0);
    setShare(poolParts.free, total ? (free ?? 0) / total : 0);
    const known = t(evicted ? "figures.pool-evicted" : "figures.pool-fresh", { running, free, rest });
    setText(poolParts.source, reason === null ? known : t(`reason.${reason}`));
  }
}
