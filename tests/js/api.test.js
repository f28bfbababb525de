import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

import { getJson } from "../../static/js/api.js";

const realFetch = globalThis.fetch;
afterEach(() => {
  globalThis.fetch = realFetch;
});

const refuse = (status, body) => {
  globalThis.fetch = async () => new Response(typeof body === "string" ? body : JSON.stringify(body), { status });
};

test("an error says its message and its hint, each once", async () => {
  refuse(404, { error: { code: "not_found", message: "No such request.", hint: "The oldest are forgotten." } });
  await assert.rejects(getJson("x"), { message: "No such request. The oldest are forgotten." });

  refuse(502, { error: { message: "It can't be reached. Is it running?", hint: "Is it running?" } });
  await assert.rejects(getJson("x"), { message: "It can't be reached. Is it running?" });
});

test("errors of other shapes are put into words too", async () => {
  refuse(400, { error: "the model is unknown" });
  await assert.rejects(getJson("x"), { message: "the model is unknown" });

  refuse(422, { detail: "a field is missing" });
  await assert.rejects(getJson("x"), { message: "a field is missing" });

  refuse(500, "<html>");
  await assert.rejects(getJson("x"), { message: "The server answered with status 500." });
});
