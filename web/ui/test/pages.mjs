// The pages that every test of "all pages" visits, on a rack as deploy/lab/stage has it.

/** Every page there is: where it is, and what a person sees when it is there. */
export const pages = [
  { name: "overview", path: "/" },
  { name: "machines", path: "/machines" },
  { name: "machine", path: "/machines/r1-u01" },
  { name: "machine that failed", path: "/machines/r3-u17" },
  { name: "machine that moves", path: "/machines/r2-u11" },
  { name: "racks", path: "/racks" },
  { name: "pending", path: "/pending" },
  { name: "images", path: "/images" },
  { name: "templates", path: "/templates" },
  { name: "template", path: "/templates/install" },
  { name: "template's preview", path: "/templates/inspect?tab=preview&machine=r3-u01", role: "operator" },
  { name: "new template", path: "/templates?new=1", role: "operator" },
  { name: "networks", path: "/networks" },
  { name: "network", path: "/networks/lan" },
  { name: "provision", path: "/provision", role: "operator" },
  { name: "events", path: "/events" },
];

/** Waits until a page shows what it loads. */
export async function loaded(page) {
  await page.locator("main").waitFor();
  await page.waitForFunction(() => !document.querySelector("main .loading, main [aria-busy=true]"));
}

/** Goes to a page inside the app, as a link does, which is faster than a reload. */
export async function visit(page, path) {
  await page.evaluate((to) => {
    history.pushState(null, "", to);
    dispatchEvent(new PopStateEvent("popstate"));
  }, path);
  await loaded(page);
}
