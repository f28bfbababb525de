import assert from "node:assert/strict";
import { test } from "node:test";

import { KEYS, actionOf } from "../../static/js/views/keys.js";
import { t } from "../../static/js/words.js";

const field = { closest: (selector) => (selector.includes("textarea") ? {} : null) };

test("every key has one meaning and says it", () => {
  assert.equal(new Set(KEYS.map(({ key }) => key)).size, KEYS.length);
  for (const { key, action } of KEYS) {
    assert.equal(actionOf({ key }), action);
    assert.notEqual(t(`keys.${action}`), `keys.${action}`);
  }
});

test("no key acts while text is written or with a modifier; off means all but the sheet", () => {
  assert.equal(actionOf({ key: "d", target: field }), null);
  assert.equal(actionOf({ key: "d", ctrlKey: true }), null);
  assert.equal(actionOf({ key: "c", metaKey: true }), null);
  assert.equal(actionOf({ key: "q" }), null);
  assert.equal(actionOf({ key: "d" }, { enabled: false }), null);
  assert.equal(actionOf({ key: "?" }, { enabled: false }), "sheet");
});
