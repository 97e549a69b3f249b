// The page: a list of runs at #/, one run at #/runs/ID. Each is a function that fills <main> and
// is told by an AbortSignal when the person goes elsewhere.

import { request } from "./api.js";
import { showRun } from "./run.js";
import { showRuns } from "./runs.js";
import { h } from "./view.js";

const main = document.getElementById("content");
let leaving = new AbortController();
let first = true;

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const runId = location.hash.match(/^#\/runs\/(.+)$/)?.[1];
  try {
    const about = await request("GET", "api/app");
    document.getElementById("serving").replaceChildren(
      h("strong", {}, about.kind), " on ", h("strong", { class: "engine" }, about.engine),
      about.tenant ? ` as ${about.tenant}` : "");
    main.replaceChildren();
    const title = runId
      ? await showRun(main, decodeURIComponent(runId), about, leaving.signal)
      : await showRuns(main, about, leaving.signal);
    document.title = `${title} – Two Workers`;
  } catch (error) {
    main.replaceChildren(
      h("h1", { tabindex: -1 }, "That did not work"), h("p", { class: "error" }, error.message),
      h("p", {}, h("a", { href: "#/" }, "All runs")));
  }
  if (!first) main.querySelector("h1")?.focus(); // a screen reader begins with the new content
  first = false;
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is taken by the page that is shown
  main.focus();
});
addEventListener("hashchange", show);
show();
