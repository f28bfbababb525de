import assert from "node:assert/strict";
import { test } from "node:test";

import * as format from "../../static/js/format.js";

test("unknown is a dash in every form", () => {
  for (const write of [format.count, format.percent, format.duration]) {
    for (const value of [null, undefined, NaN, Infinity]) assert.equal(write(value), "—");
    assert.notEqual(write(0), "—");
  }
  assert.equal(format.age(null, 1), "—");
  assert.equal(format.shortHash(null), "—");
});

test("shares keep a decimal, and only all is 100 %", () => {
  assert.equal(format.percent(0), "0 %");
  assert.equal(format.percent(0.924), "92.4 %");
  assert.equal(format.percent(11904 / 12006), "99.2 %");
  assert.equal(format.percent(0.9996), "99.96 %");
  assert.equal(format.percent(0.999999), "99.99 %");
  assert.equal(format.percent(1), "100 %");
});

test("times change their unit where it helps", () => {
  assert.equal(format.duration(0.72), "0.7 ms");
  assert.equal(format.duration(9.96), "10 ms");
  assert.equal(format.duration(43.4), "43 ms");
  assert.equal(format.duration(999.6), "1.00 s");
  assert.equal(format.duration(1274), "1.27 s");
  assert.equal(format.duration(12_740), "12.7 s");
});

test("names", () => {
  assert.equal(format.count(12006), "12,006");
  assert.equal(format.requestName("r-8"), "#8");
  assert.equal(format.requestName("r-00012"), "#12");
  assert.equal(format.requestName("abcdef"), "#cdef");
  assert.equal(format.hostOf("http://gpu-1:8000/"), "gpu-1:8000");
  assert.equal(format.shortHash("80f8d46b9e3ac303"), "80f8d46b…");
});

test("Plotly's labels show markup as text", () => {
  assert.equal(format.plotlyText('<a href="x">&'), '&lt;a href="x"&gt;&amp;');
});

test("clipping never cuts a character in two", () => {
  assert.equal(format.clip("😀😀😀", 2), "😀…");
  assert.equal(format.clip("abc", 3), "abc");
});

test("ages", () => {
  assert.equal(format.age(1000, 1200), "just now");
  assert.equal(format.age(0, 20_000), "20 s ago");
  assert.equal(format.age(0, 300_000), "5 min ago");
  assert.equal(format.age(0, 7_200_000), "2 h ago");
});

test("the words of a block leave the template's marks out", () => {
  assert.equal(format.wordsOf("<|im_start|>system\nYou are  the support assistant"), "You are the support assistant");
  assert.equal(format.wordsOf("a <b>bold</b> system\tword"), "a <b>bold</b> system word");
  assert.equal(format.wordsOf("x".repeat(200)).length, 90);
  assert.equal(format.wordsOf(null), "");
});
