// Demo mode: the workers that the service started, and the buttons that break them.

import { request } from "./api.js";
import { action, announce, h, setText } from "./view.js";

const EVERY = 1000; // milliseconds between two looks at the workers

// `mark(owner)` shows which worker owns the run in view.
export async function workersPanel(signal) {
  const list = h("ul", { class: "workers" });
  const error = h("p", { class: "error", role: "alert" });
  const cards = new Map();
  const refresh = async () => {
    try {
      const workers = await request("GET", "api/demo/workers");
      for (const worker of workers) {
        if (!cards.has(worker.worker_id)) cards.set(worker.worker_id, card(worker.worker_id, refresh));
        cards.get(worker.worker_id).update(worker);
      }
      const shown = workers.map((worker) => cards.get(worker.worker_id).element);
      if (shown.some((element, position) => list.children[position] !== element)) list.replaceChildren(...shown);
      error.textContent = "";
    } catch (failure) {
      error.textContent = failure.message;
    }
  };
  const start = action("Start another worker", async () => {
    const worker = await request("POST", "api/demo/workers");
    announce(`Worker ${worker.worker_id} started`);
    await refresh();
  });
  await refresh();
  const timer = setInterval(refresh, EVERY);
  signal.addEventListener("abort", () => clearInterval(timer));
  const mark = (owner) => {
    for (const [workerId, { owns }] of cards) owns.hidden = workerId !== owner;
  };
  const element = h("section", { class: "panel", "aria-labelledby": "workers-title" },
    h("h2", { id: "workers-title" }, "Workers"),
    h("p", { class: "quiet" },
      "Real processes. A killed one leaves an orphan; a paused one wakes up as a zombie, which still believes that it owns the run."),
    error, list, start.button, start.error);
  return { element, mark };
}

function card(workerId, refresh) {
  const told = async (verb, past) => {
    await request("POST", `api/demo/workers/${encodeURIComponent(workerId)}/${verb}`);
    announce(`Worker ${workerId} ${past}`);
    await refresh();
  };
  const kill = action("Kill this worker", () => told("kill", "was killed"), { class: "danger", "aria-label": `Kill worker ${workerId}` });
  const pause = action("Pause this worker", () => told(pause.verb, pause.verb === "pause" ? "is paused" : "goes on"));
  const status = h("span", { class: "status" });
  const owns = h("strong", { class: "owns", hidden: true }, "owns this run");
  const last = h("p", { class: "last" });
  const output = h("pre", { tabindex: 0, "aria-label": `Output of worker ${workerId}` });
  const element = h("li", {},
    h("div", { class: "bar" }, h("code", {}, workerId), h("span", {}, owns, " ", status)),
    h("div", { class: "buttons" }, kill.button, pause.button, kill.error, pause.error),
    last,
    h("details", {}, h("summary", {}, "All output"), output));
  const update = (worker) => {
    element.className = worker.status;
    setText(status, `${worker.status}, process ${worker.pid}`);
    setText(last, worker.output.length > 1 ? worker.output.at(-1) : "");
    setText(output, worker.output.join("\n"));
    pause.verb = worker.status === "paused" ? "resume" : "pause";
    const label = worker.status === "paused" ? "Let it go on" : "Pause this worker";
    setText(pause.button, label);
    pause.button.setAttribute("aria-label", `${label}: ${workerId}`);
    kill.button.hidden = pause.button.hidden = worker.status === "ended";
  };
  return { element, owns, update };
}
