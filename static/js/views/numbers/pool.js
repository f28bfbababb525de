/** The pool in three parts with the engine's gauge beside it, other tiers, and what sharing and reuse save. */

import { byId, setStyle, setText } from "../../dom.js";
import { UNKNOWN, bytes, count, percent } from "../../format.js";
import { otherTiers, poolParts, savings } from "../../numbers/pool.js";
import { primaryServer } from "../../selectors.js";
import { t } from "../../words.js";
import { createFacts } from "./facts.js";

export function createPool() {
  const bar = Object.fromEntries([...byId("pool-bar").children].map((node) => [node.dataset.part, node]));
  const facts = createFacts(byId("pool-facts"));
  const tiers = createFacts(byId("pool-tiers"));
  const saved = createFacts(byId("saved-facts"));
  let drawn = [];
  return (state, ui) => {
    if (ui.numbers !== "pool") return null;
    const inputs = [state.servers, state.metrics, state.caches, ui.paint];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    const parts = poolParts(state);
    facts([...["held", "cached", "unwritten"].map((part) => partRow(part, parts)), { key: "total", name: t("pool.total"), value: count(parts.total), note: t("pool.total-note") }]);
    for (const part of ["held", "cached"]) setStyle(bar[part], "width", `${parts.total ? (100 * (parts[part] ?? 0)) / parts.total : 0}%`);
    setText(byId("pool-gauge"), gaugeWords(parts));
    tiers(tierRows(primaryServer(state)));
    saved(savedRows(savings(state)));
    return null;
  };
}

function partRow(part, parts) {
  const value = parts[part];
  const name = part === "unwritten" && parts.evicted ? t("pool.part.empty") : t(`pool.part.${part}`);
  if (value === null) return { key: part, name, value: UNKNOWN, note: t(`reason.${parts.reasons[part]}`) };
  const said = part === "cached" && parts.atLeast ? t("pool.at-least", { n: value }) : count(value);
  return { key: part, name, value: said, note: t(`pool.source.${part}`, { share: percent(parts.total ? value / parts.total : null) }) };
}

/** The gauge under its honest name: it counts what running requests hold, so 0 doesn't mean that the cache is empty. */
function gaugeWords({ gauge, reasons }) {
  return gauge === null ? t("pool.gauge-unknown", { reason: t(`reason.${reasons.held ?? "no-metrics"}`) }) : t("pool.gauge", { share: percent(gauge) });
}

function tierRows(server) {
  const found = otherTiers(server);
  if (found.length === 0) return [{ key: "none", name: t("pool.no-tiers"), value: "" }];
  return found.map(({ medium, blocks }) => ({ key: medium, name: medium, value: t("unit.blocks", { n: blocks }) }));
}

function savedRows({ blocks, bytes: memory, tokens, connectorTokens }) {
  const rows = [
    { key: "shared", name: t("saved.shared"), value: t("unit.blocks", { n: blocks }), note: blocks === null ? t("reason.no-events") : t("saved.shared-note", { bytes: memory === null ? t("saved.no-bytes") : bytes(memory) }) },
    { key: "reused", name: t("saved.reused"), value: t("unit.tokens", { n: tokens }), note: tokens === null ? t("reason.no-answer") : t("saved.reused-note") },
  ];
  if (connectorTokens > 0) rows.push({ key: "connector", name: t("saved.connector"), value: t("unit.tokens", { n: connectorTokens }), note: t("saved.connector-note") });
  return rows;
}
