/** Fix and resend: what keeps two requests from sharing, both rewritten, and what that gains, measured on this server. */

import { byId, make, setAttribute, setChildren, setHidden, setStyle, setText } from "../../dom.js";
import { UNKNOWN, count, duration } from "../../format.js";
import { primaryServer } from "../../selectors.js";
import { diffRows, excerpt, likest, lost } from "../../why/pairs.js";
import { language, t } from "../../words.js";
import { shownRecord } from "../try.js";

/** A finding's {name, advice} in the page's language. Pure. */
export function findingWords({ name, advice, translations }) {
  const own = translations?.[language()];
  return own ? { name: own[0], advice: own[1] } : { name, advice };
}

/** What the second request of each pair came to: {asIs, rewritten}, each {cached, tokens, ttft} or null until it is known. Pure. */
export function gains(ids, requests) {
  const of = (name) => {
    const record = requests[ids[name]]?.record ?? null;
    if (record === null || record.outcome !== "ok") return null;
    return { cached: record.cached_tokens, tokens: record.prompt_tokens, ttft: record.ttft_ms };
  };
  return { asIs: of("as-is-second"), rewritten: of("rewritten-second") };
}

/** The gain in a sentence; null until both are known. Pure. */
export function gainWords({ asIs, rewritten }) {
  if (asIs === null || rewritten === null || asIs.cached === null || rewritten.cached === null) return null;
  const params = { before: asIs.cached, after: rewritten.cached, from: duration(asIs.ttft), to: duration(rewritten.ttft) };
  if (rewritten.cached <= asIs.cached) return t("fix.no-gain", params);
  return t(rewritten.ttft < asIs.ttft ? "fix.gain" : "fix.gain-tokens", params);
}

/** `fixing` of why/fixing.js, `book` of why/sent_book.js. Answers {view, openFor(before, after)}. */
export function createFix({ fixing, book, getState }) {
  const dialog = byId("fix");
  let drawn = [];

  byId("fix-close").addEventListener("click", () => dialog.close());
  byId("fix-send").addEventListener("click", () => fixing.resend(primaryServer(getState())?.models[0] ?? null));
  byId("fix-stop").addEventListener("click", () => fixing.stop());
  byId("verdict-fix-open").addEventListener("click", open);
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    fixing.stop();
    // What was shown of the prompt doctor's list gives way to the form's own.
    if (fixing.state.id === null) fixing.forget();
  });

  function open() {
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
  }

  /** The same of two requests that weren't sent from the form. */
  async function openFor(before, after) {
    await fixing.look(null, before, after);
    if (fixing.state.finding !== null) open();
  }

  /** Each answered request of the form is held against the one before it that is most like it, once. */
  function look(state, ui) {
    const record = shownRecord(state, ui.run);
    const taken = dialog.open || (fixing.state.id === null && fixing.state.phase === "asking");
    if (ui.run.phase !== "done" || !record?.verdict || fixing.state.id === record.id || taken) return;
    const own = book.get(record.id);
    const other = own && lost(record) ? likest(book.newest().filter(([id]) => id !== record.id), own.body) : null;
    if (other !== null) fixing.look(record.id, other[1].body, own.body);
    else if (fixing.state.id !== null) fixing.forget();
  }

  function view(state, ui) {
    look(state, ui);
    const inputs = [ui.fix, ui.paint, state.requests, ui.run.ids];
    if (inputs.every((input, i) => input === drawn[i])) return null;
    drawn = inputs;
    drawHint(ui.fix, ui.run);
    if (ui.fix.finding !== null) draw(ui.fix, state.requests);
    return null;
  }

  return { view, openFor };
}

/** The line under the verdict. */
function drawHint({ id, finding }, run) {
  const hint = byId("verdict-fix");
  const shown = finding !== null && run.ids.includes(id);
  setHidden(hint, !shown);
  if (!shown) return;
  setText(byId("verdict-fix-name"), findingWords(finding).name);
  setText(byId("verdict-fix-span"), clipped(finding.breaker.after.text || finding.breaker.before.text));
  setText(byId("verdict-fix-open"), t(finding.after_remedy || finding.before_remedy ? "fix.open" : "fix.open-advice"));
}

const clipped = (text) => (text.length > 60 ? `${text.slice(0, 57)}…` : text);

function draw({ phase, before, after, finding, ids, running, error }, requests) {
  const { name, advice } = findingWords(finding);
  setText(byId("fix-title"), name);
  setText(byId("fix-advice"), advice);
  setText(byId("fix-lost"), t("fix.constant", { n: finding.breaker.constant_chars }));
  setChildren(byId("fix-spans"), [["fix.earlier", before, finding.breaker.before], ["fix.later", after, finding.breaker.after]].flatMap(([key, body, span]) => spanRow(t(key), excerpt(body, finding.breaker, span))));
  const remedy = finding.after_remedy ?? finding.before_remedy;
  setHidden(byId("fix-remedy"), remedy === null);
  setHidden(byId("fix-no-remedy"), remedy !== null);
  if (remedy === null) return;
  setChildren(byId("fix-diff"), diffRows(remedy.diff).map(({ kind, text }) => make("li", { "data-kind": kind }, make("span", { dir: "auto" }, text || " "))));
  setText(byId("fix-changes"), language() === "zh" ? remedy.changes_zh : remedy.changes);
  const sending = phase === "sending";
  setAttribute(byId("fix-send"), "disabled", sending);
  setHidden(byId("fix-stop"), !sending);
  setText(byId("fix-said"), phase === "failed" ? error : sending ? t("fix.sending", { n: Object.keys(ids).length || 1 }) : "");
  setAttribute(byId("fix"), "data-phase", phase);
  setAttribute(byId("fix"), "data-running", running);
  drawGains(gains(ids, requests), Object.keys(ids).length > 0);
}

function spanRow(title, { lead, text, tail }) {
  return [make("dt", {}, title), make("dd", { dir: "auto" }, lead, make("mark", {}, text === "" ? t("fix.nothing") : text), tail)];
}

function drawGains(found, begun) {
  setHidden(byId("fix-gains"), !begun);
  if (!begun) return;
  const slowest = Math.max(found.asIs?.ttft ?? 0, found.rewritten?.ttft ?? 0, 1);
  for (const name of ["asIs", "rewritten"]) {
    const row = byId(`fix-${name}`);
    const { cached = null, tokens = null, ttft = null } = found[name] ?? {};
    const [, cachedCell, timeCell] = row.children;
    const [tokenBar, tokenText] = cachedCell.children;
    const [timeBar, timeText] = timeCell.children;
    setText(tokenText, cached === null ? UNKNOWN : t("fix.of", { cached: count(cached), n: tokens }));
    setStyle(tokenBar.firstElementChild, "width", `${cached === null || !tokens ? 0 : (100 * cached) / tokens}%`);
    setText(timeText, duration(ttft));
    setStyle(timeBar.firstElementChild, "width", `${ttft === null ? 0 : (100 * ttft) / slowest}%`);
  }
  setText(byId("fix-gain"), gainWords(found) ?? "");
}
