/**
 * What "Try it" does: builds the page's own chat requests and sends them one after the other. No DOM, no network of its
 * own: `send` is api.streamChat or a test's stand-in. Its state is plain data, handed to `onChange` after each change.
 */

const MAX_TOKENS = 64;

export const IDLE = {
  /** idle, waiting (for the first token), streaming, settling (the record is on its way), done, failed or stopped. */
  phase: "idle",
  index: 0,
  total: 0,
  question: "",
  answer: "",
  error: null,
  /** ids that the dashboard gave the requests of this run, in order. */
  ids: [],
};

export const isBusy = (run) => run.phase === "waiting" || run.phase === "streaming";

/**
 * The request for one question: {body, headers}. `salt`: a fresh cache salt for a cold start, or null; `earlier`: the
 * messages of the talk so far; `tools`: what the prompt offers the model, which isn't asked to call them; `bare`: an empty
 * system prompt is sent too, since many chat templates put one of their own where there is none.
 */
export function buildRequest({ model, system, question, salt = null, earlier = [], tools = null, bare = false }) {
  const messages = [];
  if (system !== "" || bare) messages.push({ role: "system", content: system });
  messages.push(...earlier, { role: "user", content: question });
  const body = {
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    return_token_ids: true,
    vllm_xargs: { kv_cache_report_mode: "full" },
    temperature: 0,
    max_tokens: MAX_TOKENS,
  };
  // With "none" a server needs no parser for calls; the tools stand in the prompt all the same.
  if (tools !== null) Object.assign(body, { tools, tool_choice: "none" });
  const headers = { "X-PrefixScope-Origin": "page" };
  if (salt !== null) {
    body.cache_salt = salt;
    headers["X-PrefixScope-Cold"] = "1";
  }
  return { body, headers };
}

/** 128 random bits as text. */
export function freshSalt(crypto = globalThis.crypto) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** `text` with its first letter or digit changed: everything behind it then hashes anew. */
export function changeStart(text) {
  return text.replace(/[\p{L}\p{N}]/u, (first) => swap(first));
}

/** `text` with its last letter or digit changed: only the last block then hashes anew. */
export function changeEnd(text) {
  return text.replace(/[\p{L}\p{N}](?=[^\p{L}\p{N}]*$)/u, (last) => swap(last));
}

/** Another character of the same kind; swapping twice gives a third one or the first back, never an empty text. */
function swap(character) {
  if (/\p{N}/u.test(character)) return character === "7" ? "8" : "7";
  if (/\p{Script=Han}/u.test(character)) return character === "新" ? "旧" : "新";
  const replacement = character.toLowerCase() === "x" ? "y" : "x";
  return character === character.toLowerCase() ? replacement : replacement.toUpperCase();
}

export function createComposer({ send, onChange, salt = freshSalt }) {
  let run = IDLE;
  let abort = null;

  function update(change) {
    run = { ...run, ...change };
    onChange(run);
  }

  /**
   * Sends `questions` one after the other under one system prompt; with `turns` each continues the talk before it. Ends
   * early where one fails or `stop` is called.
   */
  async function start({ model, system, questions, cold, turns = false, tools = null, bare = false }) {
    if (isBusy(run) || questions.length === 0) return;
    run = { ...IDLE, total: questions.length };
    abort = new AbortController();
    const { signal } = abort;
    const talk = [];
    try {
      for (const [index, question] of questions.entries()) {
        update({ phase: "waiting", index, question, answer: "" });
        await send({
          ...buildRequest({ model, system, question, salt: cold ? salt() : null, earlier: turns ? [...talk] : [], tools, bare }),
          signal,
          onStart: (id) => update({ ids: id === null ? run.ids : [...run.ids, id] }),
          onText: (text) => update({ phase: "streaming", answer: run.answer + text }),
        });
        talk.push({ role: "user", content: question }, { role: "assistant", content: run.answer });
      }
      update({ phase: "done" });
    } catch (error) {
      if (signal.aborted) update({ phase: "stopped" });
      else update({ phase: "failed", error: error instanceof Error ? error.message : String(error) });
    }
  }

  return {
    get run() {
      return run;
    },
    start,
    stop: () => abort?.abort(),
  };
}
