// The figures of deploy/docs/performance.md. Bytes and memory are judged always; times where
// RACKSTRAP_BENCH=1 says that the machine is quiet, and as processor time of the page.
import assert from "node:assert/strict";
import https from "node:https";
import test from "node:test";
import { act, api, base, eventually, figure, open, session, token } from "./harness.mjs";
import { loaded } from "./pages.mjs";

const many = 10_000;

test("the first page: bytes, and time until it can be used", async (t) => {
  const page = await open(t, "", { path: "/favicon.svg", mayFail: /favicon\.ico/ });
  await session(page.context(), token("viewer")); // signed in, and nothing of the UI is fetched
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Network.enable");
  await cdp.send("Network.setCacheDisabled", { cacheDisabled: true });
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  let transferred = 0;
  cdp.on("Network.loadingFinished", (e) => (transferred += e.encodedDataLength));
  await page.goto(`${base}/`);
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await loaded(page);
  const usable = await page.evaluate(() => performance.now());
  const busy = await cpu(cdp);
  figure("first page, everything that is transferred", transferred / 1000, 150, "kB");
  figure("first page, until it can be used", usable, 1000, "ms", { time: true });
  figure("first page, processor time of the page", busy, 1000, "ms", { time: true });
});

/** The processor time that a page's own thread took so far, in ms. */
async function cpu(cdp) {
  const { metrics } = await cdp.send("Performance.getMetrics");
  return metrics.find((m) => m.name === "TaskDuration").value * 1000;
}

test("an event reaches the page", async (t) => {
  const page = await open(t, "viewer", { path: "/machines" });
  await page.getByText("r3-u01").first().waitFor();
  const took = [];
  for (let i = 0; i < 10; i++) {
    const on = i % 2 === 0;
    const seen = page.evaluate(
      (want) =>
        new Promise((done) => {
          const look = () => /hold/i.test([...document.querySelectorAll("tr, [role=row]")].find((r) => r.textContent.includes("r3-u01"))?.textContent ?? "") === want;
          const o = new MutationObserver(() => {
            if (look()) requestAnimationFrame(() => done(Date.now()));
          });
          o.observe(document.body, { subtree: true, childList: true, characterData: true });
        }),
      on,
    );
    await page.evaluate(() => new Promise(requestAnimationFrame)); // the observer is there
    const asked = Date.now();
    await api("operator", "POST", "/hardware/r3-u01/hold", { hold: on });
    took.push((await seen) - asked);
  }
  took.sort((a, b) => a - b);
  figure("a change, from the request to the frame that shows it, median", took[5], 500, "ms", { time: true });
});

test("10,000 machines: the filter, and what the page holds", async (t) => {
  await act("crowd", { n: many });
  const page = await open(t, "viewer", { path: "/machines" });
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Performance.enable", { timeDomain: "threadTicks" });
  await eventually("all machines are counted", async () => /10,0\d\d/.test(await page.locator("main").innerText()));
  const search = page.locator("main input[type=search]");
  await search.waitFor();
  const took = [];
  const busy = [];
  for (const filter of Object.entries(filters)) {
    const before = await cpu(cdp);
    took.push(await search.evaluate(type, filter));
    busy.push((await cpu(cdp)) - before);
  }
  figure(`${many} machines, a filter until the frame that shows it, worst of ${took.length}`, Math.max(...took), 100, "ms", { time: true });
  figure(`${many} machines, a filter, processor time of the page, worst`, Math.max(...busy), 100, "ms", { time: true });
  const drawn = () => page.locator("main tr, main [role=row]").count();
  assert.ok((await drawn()) < 300, `${await drawn()} rows are in the document`);
  await page.getByRole("link", { name: "Networks" }).click();
  await page.getByRole("link", { name: "lan", exact: true }).waitFor();
  await page.getByRole("link", { name: "Machines", exact: true }).click(); // all at once: they are known
  await page.getByRole("link", { name: "node-00000" }).waitFor();
  assert.ok((await drawn()) < 300, `${await drawn()} rows are in the document`);
  await cdp.send("HeapProfiler.enable");
  await cdp.send("HeapProfiler.collectGarbage");
  const { usedSize } = await cdp.send("Runtime.getHeapUsage");
  figure(`${many} machines, memory of the page`, usedSize / 2 ** 20, 100, "MiB");
});

/** Filters, and what the page then says of how many there are. */
const filters = {
  "node-0": "10,000 of",
  "node-07": "1,000 of",
  "node-077": "100 of",
  "label.role=db": "3,337 of",
  "rack:c123": "40 of",
  "nothing-like-it": "0 of",
  "": "s10,040 machines", // the heading's end, and not "of 10,040"
};

/** Types into a search field at once, in the page: how long, in ms, until the frame in which the page says what is wanted. */
function type(input, [text, want]) {
  const main = document.querySelector("main");
  return new Promise((done) => {
    const began = performance.now();
    const o = new MutationObserver(() => {
      if (!main.textContent.includes(want)) return;
      o.disconnect();
      // the next frame begins when this one is shown
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - began)));
    });
    o.observe(main, { subtree: true, childList: true, characterData: true });
    Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, text);
    input.dispatchEvent(new InputEvent("input", { bubbles: true, data: text }));
  });
}

test("200 open pages: memory of the daemon", async () => {
  const agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false, maxSockets: Infinity });
  await page(agent, token("viewer")); // what the first one costs is not a page's
  const before = (await act("memory")).now;
  const streams = [];
  for (let person = 0; person < 10; person++) { // a token has a bounded number of sessions
    const { secret } = await api("admin", "POST", "/tokens", { metadata: { name: `person-${person}` }, spec: { role: "viewer" } });
    for (let i = 0; i < 20; i++) streams.push(await page(agent, secret));
  }
  const { now } = await act("memory");
  assert.equal(streams.filter((s) => s.readable).length, 200, "streams are open");
  for (const s of streams) s.destroy();
  agent.destroy();
  figure("200 signed-in pages with their streams, memory of the daemon", now - before, 200, "MiB");
});

/** What an open page is for the daemon: a session, the rows once, a stream on a connection of its own. */
async function page(agent, secret) {
  const signed = await ask(agent, "POST", "/session", { token: secret });
  const cookie = signed.headers["set-cookie"][0].split(";")[0];
  signed.resume();
  const rows = await ask(agent, "GET", "/summaries?limit=200", undefined, cookie);
  for await (const _ of rows);
  return ask(new https.Agent({ rejectUnauthorized: false }), "GET", "/events", undefined, cookie);
}

/** A request as a page makes it; the answer, whose body is still to be read. */
function ask(agent, method, path, body, cookie) {
  return new Promise((done, failed) => {
    const headers = { Origin: base, "Sec-Fetch-Site": "same-origin", "Content-Type": "application/json" };
    if (cookie) headers.Cookie = cookie;
    const r = https.request(`${base}/api/v1${path}`, { agent, method, headers }, (answer) => {
      if (answer.statusCode === 200 || answer.statusCode === 201 || answer.statusCode === 204) done(answer);
      else failed(new Error(`${method} ${path}: ${answer.statusCode}`));
    });
    r.on("error", failed);
    r.end(body && JSON.stringify(body));
  });
}
