// The list of runs, and the form that starts one.

import { request } from "./api.js";
import { ago, badge, dollars, fields, h, payloadOf } from "./view.js";
import { workersPanel } from "./workers.js";

const STATES = ["pending", "scheduled", "waiting", "suspended", "running", "succeeded", "failed", "cancelled"];
const EVERY = 2000; // milliseconds between two looks at the list

export async function showRuns(main, about, signal) {
  const state = h("select", { id: "state" }, h("option", { value: "" }, "all states"),
    STATES.map((name) => h("option", {}, name)));
  const rows = h("tbody");
  const empty = h("p", { class: "quiet" });
  const error = h("p", { class: "error", role: "alert" });
  const refresh = async () => {
    try {
      const filter = state.value ? `?state=${state.value}` : "";
      const { runs } = await request("GET", `api/runs${filter}`);
      update(rows, runs);
      empty.textContent = runs.length ? "" : "No runs yet.";
      error.textContent = "";
    } catch (failure) {
      error.textContent = failure.message;
    }
  };
  state.addEventListener("change", refresh);
  main.append(
    h("h1", { tabindex: -1 }, "Runs"),
    h("div", { class: "columns" },
      h("div", {},
        startForm(about),
        h("section", { "aria-labelledby": "list-title" },
          h("div", { class: "bar" }, h("h2", { id: "list-title" }, "All runs"),
            h("label", { class: "inline" }, "Show ", state)),
          error,
          h("table", {},
            h("caption", { class: "unseen" }, "Runs, newest first"),
            h("thead", {}, h("tr", {}, ["Run", "State", "Cost", "Started"].map((name) => h("th", { scope: "col" }, name)))),
            rows),
          empty)),
      about.demo ? (await workersPanel(signal)).element : null));
  await refresh();
  const timer = setInterval(refresh, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
  return "Runs";
}

// Rows are kept where they are, so that a focused link stays focused.
function update(rows, runs) {
  const old = new Map([...rows.children].map((row) => [row.dataset.run, row]));
  rows.replaceChildren(...runs.map((run) => {
    const cells = [badge(run.state), dollars(run.cost), ago(run.created_at, Date.now())];
    const row = old.get(run.run_id) ?? h("tr", { "data-run": run.run_id },
      h("th", { scope: "row" }, h("a", { href: `#/runs/${encodeURIComponent(run.run_id)}` }, run.run_id)),
      cells.map(() => h("td")));
    cells.forEach((cell, position) => row.children[position + 1].replaceChildren(cell));
    return row;
  }));
}

function startForm(about) {
  const error = h("p", { class: "error", role: "alert" });
  const button = h("button", { class: "primary" }, "Start");
  const budget = h("input", { id: "budget", type: "number", min: 0, step: "any" });
  let key = crypto.randomUUID?.() ?? String(Math.random()); // kept when a start is sent again
  const form = h("form", {
    async onsubmit(event) {
      event.preventDefault();
      error.textContent = "";
      button.disabled = true;
      try {
        const limit = budget.value ? Math.round(budget.value * 1e6) : null;
        const run = await request("POST", "api/runs", { payload: payloadOf(form), budget: limit, key });
        location.hash = `#/runs/${encodeURIComponent(run.run_id)}`;
      } catch (failure) {
        error.textContent = failure.message;
      } finally {
        button.disabled = false;
      }
    },
    oninput() { key = crypto.randomUUID?.() ?? String(Math.random()); },
  });
  const all = fields(about.payload_schema);
  const [needed, optional] = [all.filter((f) => f.querySelector(":required")), all.filter((f) => !f.querySelector(":required"))];
  form.append(...needed,
    h("details", {}, h("summary", {}, "Options"), ...optional,
      h("label", {}, "Budget in US dollars (optional)", budget)),
    error, button);
  return h("section", { "aria-labelledby": "start-title" }, h("h2", { id: "start-title" }, `Start: ${about.kind}`), form);
}
