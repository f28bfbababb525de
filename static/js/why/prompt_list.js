/** Lists of prompts for the prompt doctor: what was pasted as JSON lines, and single requests out of them. Pure. */

const BREAK = /\r\n|\r|\n/;
const RULE = /^\s*-{3,}\s*$/;

/** Whether a text is JSON lines already: its first line that isn't empty begins like an object. */
export const isJsonLines = (text) => /^\s*\{/.test(text);

/** The prompts of a pasted text, divided by lines of three dashes or more; white space around them belongs to none. */
export function promptsOf(text) {
  const prompts = [[]];
  for (const line of text.split(BREAK)) {
    if (RULE.test(line)) prompts.push([]);
    else prompts.at(-1).push(line);
  }
  return prompts.map((lines) => lines.join("\n").trim()).filter((prompt) => prompt !== "");
}

/** JSON lines of what was pasted: prompts become user messages for `model`; JSON lines stay as they are. */
export function linesOf(text, model) {
  if (isJsonLines(text)) return text;
  return promptsOf(text).map((content) => JSON.stringify({ model, messages: [{ role: "user", content }] })).join("\n");
}

/** The requests `numbers` (from 0) of JSON lines, lines that are none left out; null for those that aren't there. */
export function requestsAt(lines, numbers) {
  const found = new Map();
  const last = Math.max(...numbers);
  let number = 0;
  for (const line of lines.split(BREAK)) {
    const body = requestOf(line);
    if (body === null) continue;
    if (numbers.includes(number)) found.set(number, body);
    if (number === last) break;
    number += 1;
  }
  return numbers.map((wanted) => found.get(wanted) ?? null);
}

function requestOf(line) {
  let value;
  try {
    value = JSON.parse(line);
  } catch {
    return null;
  }
  const body = value?.body ?? value;
  const isRequest = body !== null && typeof body === "object" && (Array.isArray(body.messages) || "prompt" in body);
  return isRequest ? body : null;
}
