// What the tests of the page share: a browser, waiting, and saying what is wrong.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

export const say = (text) => console.log(`-- page: ${text}`);

export function check(is, what) {
  if (!is) throw new Error(`not so: ${what}`);
}

export function same(found, wanted, what) {
  if (found !== wanted) throw new Error(`${what}: ${JSON.stringify(found)} and not ${JSON.stringify(wanted)}`);
}

// Debian's Chromium, or what CHROMIUM names.
function program() {
  const found = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
  if (!found) throw new Error("there is no Chromium: apt-get install chromium, or name one with CHROMIUM=PATH");
  return found;
}

export async function browser() {
  const args = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath: program(), args });
}

// A page on which nothing may go wrong: what the console complains about, and what is loaded from elsewhere, is a failure.
export async function open(from, url, options = {}) {
  const context = await from.newContext({ viewport: { width: 1440, height: 1100 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(`${error.stack ?? error}`));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("request", (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith("data:")) complaints.push(`it loads ${request.url()}`);
  });
  await page.goto(url, { waitUntil: "domcontentloaded" });
  return { page, complaints, close: () => context.close() };
}

export async function until(what, isSo, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await isSo();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not so within ${seconds} s: ${what}`);
    await new Promise((go) => setTimeout(go, 100));
  }
}

export const text = (page, selector) => page.locator(selector).innerText();
