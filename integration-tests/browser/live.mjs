// The page of a real cluster: node live.mjs ADMIN HTTP [FOLDER FOR PICTURES]

import { mkdirSync } from "node:fs";
import { browser, check, open, same, say, text, until } from "./kit.mjs";

const [admin, http, pictures] = process.argv.slice(2);
const url = `http://${admin}/`;
const model = (await (await fetch(`http://${http}/v1/models`)).json()).data[0].id;

// An answer that goes on until somebody ends it; what came of it.
function answer(id, tokens = 1500) {
  const told = { status: 0, room: null, text: "", over: false };
  const body = { model, prompt: "Once upon a time there was an inn, and", max_tokens: tokens, temperature: 0.7, ignore_eos: true, stream: true };
  const read = async () => {
    const answered = await fetch(`http://${http}/v1/completions`, { method: "POST", headers: { "content-type": "application/json", "x-request-id": id }, body: JSON.stringify(body) });
    told.status = answered.status;
    for await (const part of answered.body) told.text += new TextDecoder().decode(part);
  };
  told.done = read()
    .catch((error) => (told.error = String(error)))
    .finally(() => (told.over = true));
  return told;
}

const chromium = await browser();
try {
  const { page, complaints, close } = await open(chromium, url);
  await until("it serves", async () => (await text(page, "#verdict")).startsWith("Serving"));
  const workers = await page.locator(".worker h3 b").allInnerTexts();
  check(workers.length >= 4, `the workers are there: ${workers}`);

  say("rooms appear");
  const long = answer("page-long");
  const others = [1, 2, 3, 4, 5, 6].map((n) => answer(`page-${n}`));
  const row = (id) => page.locator("#rows .row", { has: page.locator(`[title="${id}"]`) });
  await until("the room is in the table", async () => (await row("page-long").count()) === 1, 60);
  await until("it decodes", async () => (await row("page-long").innerText()).includes("decoding"), 120);

  say("one room");
  await row("page-long").click();
  await page.waitForSelector("#detail .account");
  const told = await text(page, "#detail");
  for (const part of ["page-long", "next token from", "Ends by itself in", "decode-", "the prompt is computed", "the first token"]) {
    check(told.toLowerCase().includes(part.toLowerCase()), `the account says ${part}:\n${told}`);
  }
  check((await page.locator(".timeline .track i").count()) >= 4, "its timeline has its phases");
  if (pictures) {
    mkdirSync(pictures, { recursive: true });
    await page.waitForTimeout(12_000);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.evaluate(() => dispatchEvent(new Event("resize")));
      await page.waitForTimeout(1_500);
      await page.screenshot({ path: `${pictures}/live-${scheme}-room.png` });
    }
    await page.emulateMedia({ colorScheme: "light" });
  }

  say("an abort, with confirmation");
  await page.locator("#abort").click();
  await page.locator("dialog[open] button", { hasText: "Cancel" }).click();
  await page.waitForTimeout(500);
  check(!long.over, "a question that was cancelled does nothing");
  await page.locator("#abort").click();
  await page.locator("#confirm").click();
  await until("the answer ends", async () => long.over, 30);
  check(!long.text.includes("[DONE]"), "its client is not told that it is whole");
  await page.waitForFunction(() => document.querySelector("#detail")?.innerText.includes("an operator ended it"));
  await page.locator("body").press("Escape");
  await page.locator("#ended").click();
  await until("it is among those that ended", async () => (await row("page-long").innerText().catch(() => "")).includes("operator"));
  const over = await row("page-long").innerText();
  check(/\d m?s ago/.test(over) && over.includes("prefill-"), `when it ended, and where it was, is said: ${over}`);
  await page.locator("[role=tab]", { hasText: "Open" }).click();

  say("a room that has ended is found by its request");
  await page.locator("body").press("/");
  await page.keyboard.type("page-long");
  await until("it is not open", async () => (await text(page, "#shown")) === "0 rooms");
  await page.keyboard.press("Enter");
  await until("its account is shown", async () => (await text(page, "#detail")).includes("an operator ended it"));
  await page.keyboard.press("Escape");
  await page.locator("body").press("Escape");

  say("a drain, and back");
  const card = page.locator(".worker", { hasText: "decode-1" });
  await card.locator("button").click();
  await page.locator("#confirm").click();
  await until("it drains", async () => (await card.innerText()).includes("no new rooms"));
  const drained = (await (await fetch(`${url}workers`)).json()).find((worker) => worker.name === "decode-1");
  check(drained.draining, "the gateway says so too");
  await card.locator("button").click();
  await page.locator("#confirm").click();
  await until("it takes rooms again", async () => !(await card.innerText()).includes("no new rooms"));

  if (pictures) {
    for (let n = 0; n < 24; n++) others.push(answer(`guest-${n}`, 60 + 37 * n));
    await page.waitForTimeout(20_000);
    for (const scheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme: scheme });
      others.push(...[1, 2, 3, 4].map((n) => answer(`${scheme}-${n}`, 120)));
      await page.waitForTimeout(2_500);
      await page.screenshot({ path: `${pictures}/live-${scheme}.png` });
    }
    await page.emulateMedia({ colorScheme: "light" });
  }

  say("light and dark");
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await back();
  await page.locator("body").press("t");
  await until("t makes it dark", async () => (await back()) !== light);
  await page.reload();
  await until("that is remembered", async () => (await back()) !== light);
  await page.locator("body").press("t");
  await until("and light again", async () => (await back()) === light);

  say("what is refused");
  const foreign = await fetch(`${url}workers/decode-1/drain`, { method: "POST", headers: { origin: "http://elsewhere.example" } });
  same(foreign.status, 403, "a page from elsewhere that drains a worker");
  const none = await fetch(`${url}workers/nobody/drain`, { method: "POST" });
  same(none.status, 404, "a worker that there is not");
  check((await none.text()).includes("linked are"), "who there is, is said");
  const wrong = complaints.filter((complaint) => !/Failed to load resource/.test(complaint));
  check(wrong.length === 0, wrong.join("\n"));
  await close();
  for (const one of [long, ...others]) check(one.over || one.status === 200 || one.status === 0, `an answer was refused: ${one.status} ${one.text}`);
} finally {
  await chromium.close();
}
// Answers that go on are aborted by this.
process.exit(0);
