// Visits the dashboard in Chromium and prints what it found as JSON. Its input is JSON on stdin.

import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const asked = JSON.parse(fs.readFileSync(0, "utf8"));
const load = createRequire(path.join(asked.packages, "package.json"));
const { chromium } = load("playwright-core");
const AXE = fs.readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const base = new URL(asked.link).origin;
const WITHIN = { timeout: 30000 };

const browser = await chromium.launch({
  executablePath: asked.chromium,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, locale: "en-GB", timezoneId: "UTC" });
const page = await context.newPage();
page.setDefaultTimeout(30000);
const found = { foreign: [], errors: [], pages: [], paint_ms: {}, steps: {} };
context.on("request", (request) => {
  const url = request.url();
  if (!url.startsWith(`${base}/`) && !url.startsWith("data:")) found.foreign.push(url);
});
let isLoggedIn = true; // afterwards streams are refused
page.on("console", (message) => message.type() === "error" && isLoggedIn && found.errors.push(`${message.text()} ${message.location().url}`));
page.on("pageerror", (error) => found.errors.push(String(error)));

async function checked(view, address) {
  const answer = await page.goto(base + address, { waitUntil: "load" });
  await page.evaluate(AXE);
  const violations = await page.evaluate(async (rules) => {
    const result = await globalThis.axe.run(document, { runOnly: { type: "tag", values: rules } });
    return result.violations.map((each) => `${each.id}: ${each.nodes.map((node) => node.html).join(" ").slice(0, 300)}`);
  }, RULES);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  found.pages.push({ view, address, status: answer.status(), violations, overflow });
}

async function paint(address) {
  const times = [];
  for (let i = 0; i < 5; i += 1) {
    await page.goto(base + address, { waitUntil: "load" });
    times.push(await page.evaluate(() => new Promise((resolve) => {
      new PerformanceObserver((list) => {
        const entry = list.getEntriesByName("first-contentful-paint")[0];
        if (entry) resolve(entry.startTime);
      }).observe({ type: "paint", buffered: true });
    })));
  }
  return times.sort((a, b) => a - b)[2];
}

const steps = {
  async stranger() {
    await checked("stranger", "/");
    return true;
  },
  async login() {
    await page.goto(asked.link);
    await page.waitForURL(`${base}/`, WITHIN);
    return page.locator("h1").textContent();
  },
  async views() {
    const views = { light: [1280, 800, "light"], dark: [1280, 800, "dark"], phone: [390, 844, "light"] };
    for (const [view, [width, height, colorScheme]] of Object.entries(views)) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      for (const address of asked.pages) await checked(view, address);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    return true;
  },
  async paint() {
    for (const address of asked.painted) found.paint_ms[address] = await paint(address);
    return true;
  },
  async keyboard() {
    await page.goto(`${base}/`);
    await page.keyboard.press("Tab");
    const first = await page.evaluate(() => document.activeElement.textContent);
    await page.keyboard.press("Enter");
    const then = await page.evaluate(() => document.activeElement.id);
    return { first, then };
  },
  async theme() {
    await page.emulateMedia({ colorScheme: "light" });
    await page.goto(`${base}/`);
    const color = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const before = await color();
    await page.click("[data-theme-switch]");
    const after = await color();
    await page.reload();
    const reloaded = await color();
    await page.click("[data-theme-switch]");
    return { changed: before !== after, kept: after === reloaded, back: before === (await color()) };
  },
  async charts() {
    await page.goto(`${base}/`);
    await page.waitForSelector("[data-chart] svg path, [data-chart] svg rect", WITHIN);
    return page.locator("[data-chart] svg[aria-label]").count();
  },
  async follow() {
    await page.goto(`${base}/ui/sessions/${asked.session}`);
    await page.locator("details.call summary").first().click();
    await page.fill("textarea", "!slow 3");
    await page.keyboard.press("Control+Enter");
    const seen = { written: false };
    seen.written = await page.waitForSelector("[data-writing]:not([hidden])", WITHIN).then(() => true);
    await page.waitForFunction(() => [...document.querySelectorAll(".message.user")].at(-1)?.textContent.includes("!slow 3"), null, WITHIN);
    await page.waitForSelector("[data-writing]", { state: "hidden", ...WITHIN });
    seen.stored = await page.waitForFunction(() => [...document.querySelectorAll("[data-conversation] .message")].at(-1)?.classList.contains("assistant"), null, WITHIN).then(() => true);
    seen.open = await page.locator("details.call").first().evaluate((fold) => fold.open);
    seen.emptied = (await page.inputValue("textarea")) === "";
    return seen;
  },
  async attach() {
    await page.goto(`${base}/ui/sessions/${asked.session}`);
    await page.setInputFiles("input[type=file]", { name: "note.txt", mimeType: "text/plain", buffer: Buffer.from("from-the-browser") });
    await page.waitForSelector("[data-files] input[name=file]", { state: "attached", ...WITHIN });
    await page.fill("textarea", "!echo see the file");
    await page.click("[data-reply] button.main");
    await page.waitForFunction(() => document.querySelector("[data-conversation]")?.textContent.includes("from-the-browser"), null, WITHIN);
    return true;
  },
  async escaped() {
    await page.goto(`${base}/ui/sessions/${asked.attacked}`);
    await page.waitForSelector(".message.assistant");
    return { pwned: await page.evaluate(() => "pwned" in globalThis), text: await page.locator(".message.user").first().textContent() };
  },
  async approve() {
    await page.goto(`${base}/ui/approvals`);
    await page.click(`section:has(a[href="/ui/sessions/${asked.waiting}"]) button[value=deny]`);
    const gone = (name) => document.querySelector("main")?.textContent.includes(name) === false; // null: still loading
    await page.waitForFunction(gone, asked.waiting, WITHIN);
    return true;
  },
  async hold() {
    await page.goto(`${base}/`);
    const map = await context.newPage();
    await map.goto(`${base}/ui/actors`);
    process.stdout.write("HOLDING\n");
    await new Promise((resolve) => setTimeout(resolve, asked.hold_ms));
    process.stdout.write("HELD\n");
    await map.close();
    return true;
  },
  async logout() {
    await page.goto(`${base}/`);
    isLoggedIn = false;
    await page.click("text=Log out");
    await page.waitForURL(`${base}/`, WITHIN);
    return page.locator("h2").first().textContent();
  },
  async pictures() {
    for (const { name, address, width, height, dark, full } of asked.pictures ?? []) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
      await page.goto(base + address, { waitUntil: "load" });
      await page.waitForTimeout(1500);
      await page.screenshot({ path: name, fullPage: Boolean(full) });
    }
    return true;
  },
};

for (const step of asked.steps) {
  try {
    found.steps[step] = await steps[step]();
  } catch (error) {
    found.steps[step] = { failed: String(error) };
  }
}
await browser.close();
process.stdout.write(`${JSON.stringify(found)}\n`);
