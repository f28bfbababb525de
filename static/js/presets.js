/**
 * Prompts to try, a file each. One is {id, name, watch, text, turns?, tools?, bare?}: `name` and `watch` (what to look at) by
 * language; `text`: {system, questions} by language; `turns`: each question continues the talk before it; `tools`: what
 * the request offers the model; `bare`: no system prompt at all, not even the chat template's. Texts are our own.
 */

import agent from "./presets/agent.js";
import code from "./presets/code.js";
import control from "./presets/control.js";
import document from "./presets/document.js";
import fewShot from "./presets/few_shot.js";
import history from "./presets/history.js";
import support from "./presets/support.js";

export const PRESETS = [support, history, code, document, fewShot, agent, control];

export const presetById = (id) => PRESETS.find((preset) => preset.id === id) ?? null;

/** {system, questions} in the page's language, or in the one that there is. */
export const textOf = (preset, language) => preset.text[language] ?? Object.values(preset.text)[0];
