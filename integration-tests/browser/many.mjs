// Ten thousand rooms: what is drawn stays small, whatever is done by mouse or keyboard, and what moves is followed.

import { browser, check, open, same, say, text, until } from "./kit.mjs";
import { start } from "./stub.mjs";

const COUNT = 10_000;
// The rows in sight and some to spare, ten cells each.
const MOST_ROWS = 60;

const stub = await start({ count: COUNT });
const chromium = await browser();
try {
  const { page, complaints, close } = await open(chromium, stub.url);
  await page.evaluate(() => {
    window.long = [];
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map((entry) => entry.duration))).observe({ type: "longtask" });
  });
  await until("all rooms are there", async () => (await text(page, "#shown")) === "10,000 rooms");
  const rows = () => page.locator("#rows .row").count();
  check((await rows()) <= MOST_ROWS, "only what is in sight is drawn");
  same(await page.locator("[role=grid]").getAttribute("aria-rowcount"), String(COUNT + 1), "what a screen reader is told");

  say("scrolling to the end");
  await page.locator("#rows").evaluate((box) => (box.scrollTop = box.scrollHeight));
  await until("the last row is drawn", async () => (await page.locator(`#rows .row[aria-rowindex="${COUNT + 1}"]`).count()) === 1);
  check((await rows()) <= MOST_ROWS, "only what is in sight is drawn, at the end as well");

  say("keys");
  await page.locator("body").press("/");
  same(await page.evaluate(() => document.activeElement.id), "search", "the slash goes to the search");
  await page.keyboard.type("req_00002710");
  await until("one room is found", async () => (await text(page, "#shown")) === "1 room");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#detail .account");
  check((await text(page, "#detail h2")).startsWith("Room 10000"), "Enter opens what is found");
  await page.keyboard.press("Escape");
  await page.locator("body").press("Escape");
  await until("Escape closes it", async () => (await page.locator("#detail").count()) === 0);
  await page.locator("#rows").focus();
  for (const key of ["Home", "ArrowDown", "ArrowDown", "PageDown", "End"]) await page.keyboard.press(key);
  // Where its row stands may change while one looks: which room it is does not.
  const chosen = () => page.evaluate(() => decodeURIComponent(location.hash.slice(1)));
  await until("keys choose a room", async () => (await chosen()).includes("-"));
  await until("its account is shown", async () => (await text(page, "#detail h2")).startsWith("Room "));
  await page.locator("body").press("Escape");

  say("filters");
  await page.locator(".chip.decoding").click();
  const decoding = async () => [...new Set(await page.locator("#rows em.phase").allInnerTexts())];
  await until("only one phase is shown", async () => (await decoding()).join() === "decoding");
  await page.locator(".chip.decoding").click();
  await page.locator("[role=columnheader] button", { hasText: "Age" }).click();
  await until("it is sorted", async () => (await page.locator('[aria-sort="ascending"]').innerText()).startsWith("Age"));

  say("what moves");
  const before = await text(page, "#rows .row >> nth=0");
  await until("the table is alive", async () => (await text(page, "#rows .row >> nth=0")) !== before);
  const first = await page.locator(".lanes canvas").evaluate((canvas) => canvas.toDataURL().length);
  check(first > 5_000, "the rooms are drawn");

  say("the gateway goes");
  await stub.end();
  await until("that is said", async () => (await text(page, "#verdict")).startsWith("No word from the gateway"));
  const long = await page.evaluate(() => window.long);
  say(`for the record: ${long.length} tasks of over 50 ms, the longest ${Math.round(Math.max(0, ...long))} ms, with ${COUNT} rooms of which a thousand a second move`);
  const wrong = complaints.filter((complaint) => !/ERR_|Failed to load resource/.test(complaint));
  check(wrong.length === 0, wrong.join("\n"));
  await close();
} finally {
  await chromium.close();
  await stub.end().catch(() => {});
}
