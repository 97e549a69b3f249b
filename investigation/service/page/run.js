// One run, live: who owns it until when, its steps as they are recorded, and what a person may do.

import { follow, request } from "./api.js";
import { action, ago, announce, badge, dollars, fenceName, h, seconds, setText } from "./view.js";
import { workersPanel } from "./workers.js";

const FINAL = new Set(["succeeded", "failed", "cancelled"]);
const TICK = 200; // milliseconds between two drawings of the countdown

export async function showRun(main, runId, about, signal) {
  const watched = new Watched();
  const facts = factsPanel(watched);
  const owners = ownersPanel(watched);
  const steps = stepsPanel(runId);
  const steering = steeringPanel(runId, watched);
  const workers = about.demo ? await workersPanel(signal) : null;
  const lost = h("p", { class: "error", role: "alert" });
  main.append(
    h("p", {}, h("a", { href: "#/" }, "← All runs")),
    h("h1", { tabindex: -1 }, "Run ", h("code", {}, runId)),
    lost,
    h("div", { class: "columns" },
      h("div", {}, facts.element, steering.element, owners.element, steps.element),
      workers?.element));

  const draw = () => { facts.draw(); owners.draw(); steering.draw(); workers?.mark(watched.run?.owner); };
  const timer = setInterval(draw, TICK);
  signal.addEventListener("abort", () => clearInterval(timer));
  follow(runId, signal, {
    onEvent(name, data) {
      lost.textContent = "";
      if (name === "run") watched.see(data.run, Date.parse(data.now));
      if (name === "step") steps.add(data);
      if (name === "end") showResult(runId, steering);
      draw();
    },
    onLost(reason) { lost.textContent = `Not live at the moment (${reason}); trying again.`; },
  }).catch((error) => { lost.textContent = error.message; });
  return `Run ${runId}`;
}

// What this page has seen of the run, on the service's clock.
class Watched {
  run = null;
  owners = [];
  skew = 0;

  now() { return Date.now() + this.skew; }

  see(run, now) {
    this.skew = now - Date.now();
    if (this.run && this.run.state !== run.state) announce(`The run is now ${run.state}`);
    this.run = run;
    const last = this.owners.at(-1);
    const same = last && last.owner === run.owner && fenceName(last.fence) === fenceName(run.fence);
    if (run.owner && !same) this.#taken(run);
    else if (same && run.owned_until !== last.until) this.#renewed(last, run);
  }

  #taken(run) {
    const previous = this.owners.at(-1);
    const lease = Date.parse(run.owned_until) - this.now();
    const entry = { owner: run.owner, fence: run.fence, until: run.owned_until, since: this.now(), heartbeats: 0, lease, beat: this.now() };
    this.owners.push(entry);
    if (previous && previous.owner !== run.owner) announce(`${run.owner} ${became(previous, entry)}`);
  }

  #renewed(last, run) {
    last.until = run.owned_until;
    last.fence = run.fence;
    last.heartbeats += 1;
    last.beat = this.now();
    last.lease = Math.max(last.lease, Date.parse(run.owned_until) - this.now());
  }
}

function factsPanel(watched) {
  const names = ["State", "Owner", "Fence", "Ownership ends", "Heartbeats", "If abandoned", "Cost", "Started"];
  const values = Object.fromEntries(names.map((name) => [name, h("dd")]));
  const countdown = h("span", { class: "number" });
  const meter = h("meter", { min: 0, "aria-label": "Time left of the ownership" });
  values["Ownership ends"].append(countdown, " ", meter);
  const spent = h("span");
  const budget = h("meter", { min: 0, "aria-label": "Part of the budget that is spent" });
  values.Cost.append(spent, " ", budget);
  const native = h("dl", { class: "native" });
  const draw = () => {
    const run = watched.run;
    if (!run) return;
    const owner = run.owner ? watched.owners.at(-1) : null;
    const state = values.State.firstChild?.textContent === run.state ? null : badge(run.state);
    if (state) values.State.replaceChildren(state, h("span", { class: "asked" }));
    setText(values.State.lastChild, run.cancel_requested && !FINAL.has(run.state) ? " cancel requested" : "");
    setText(values.Owner, run.owner ?? "nobody");
    setText(values.Fence, fenceName(run.fence) || "none yet");
    const left = owner ? Date.parse(owner.until) - watched.now() : 0;
    setText(countdown, owner ? (left > 0 ? `in ${seconds(left)}` : `${seconds(-left)} ago: an orphan`) : "not owned");
    meter.hidden = !owner;
    if (owner) { meter.max = owner.lease / 1000; meter.value = Math.max(0, left / 1000); meter.low = meter.max / 3; meter.high = meter.max / 3; meter.optimum = meter.max; }
    setText(values.Heartbeats, owner ? `${owner.heartbeats} seen, the last ${seconds(watched.now() - owner.beat)} ago` : "none");
    setText(values["If abandoned"], run.recovery ?? "it has ended");
    setText(spent, run.budget ? `${dollars(run.cost)} of ${dollars(run.budget)}` : `${dollars(run.cost)}, no budget set`);
    budget.hidden = !run.budget;
    if (run.budget) { budget.max = run.budget; budget.value = run.cost; budget.high = run.budget * 0.8; }
    setText(values.Started, ago(run.created_at, watched.now()));
    drawNative(native, run.native);
  };
  const element = h("section", { "aria-labelledby": "facts-title" }, h("h2", { id: "facts-title" }, "Now"),
    h("dl", { class: "facts" }, names.flatMap((name) => [h("dt", {}, name), values[name]])),
    h("details", {}, h("summary", {}, "What only this engine can say"), native));
  return { element, draw };
}

function drawNative(list, native) {
  const text = JSON.stringify(native);
  if (list.dataset.drawn === text) return;
  list.dataset.drawn = text;
  list.replaceChildren(...Object.entries(native).filter(([, value]) => value !== null).flatMap(([name, value]) =>
    [h("dt", {}, name), h("dd", {}, typeof value === "object" ? JSON.stringify(value) : String(value))]));
}

function ownersPanel(watched) {
  const list = h("ol", { class: "owners" });
  const draw = () => {
    element.hidden = watched.owners.length === 0;
    watched.owners.forEach((entry, position) => {
      const previous = watched.owners[position - 1];
      const how = previous ? became(previous, entry) : "";
      const item = list.children[position] ?? list.appendChild(h("li", {}, h("code", {}, entry.owner), h("span")));
      setText(item.lastChild, ` ${fenceName(entry.fence)}${how ? `, ${how}` : ""}`);
    });
  };
  const element = h("section", { "aria-labelledby": "owners-title", hidden: true },
    h("h2", { id: "owners-title" }, "Owners since this page was opened"), list);
  return { element, draw };
}

// On a table a run changes hands only by a takeover. Temporal owns steps, not runs: a first attempt
// is simply the next step, which any worker may get.
function became(previous, entry) {
  if (previous.owner === entry.owner) return "went on";
  const perStep = entry.fence.length > 1;
  if (perStep && entry.fence.at(-1) === 1) return "got the next step";
  return `took over ${seconds(entry.since - previous.beat)} after the last heartbeat`;
}

function stepsPanel(runId) {
  const rows = h("tbody");
  const seen = new Map();
  const add = (step) => {
    const place = step.key.slice(runId.length + 1);
    if (seen.has(place)) return; // told again after a lost connection
    const cells = [step.kind, step.outcome, step.attempt, step.worker ?? "", new Date(step.recorded_at).toLocaleTimeString()];
    const row = h("tr", { class: step.outcome }, h("th", { scope: "row" }, place), cells.map((cell) => h("td", {}, String(cell))));
    const order = place.split(".").map(Number);
    const next = [...seen.entries()].find(([, other]) => before(order, other.order));
    rows.insertBefore(row, next ? next[1].row : null);
    seen.set(place, { row, order });
    const sorted = [...seen.entries()].sort(([, a], [, b]) => (before(a.order, b.order) ? -1 : 1));
    seen.clear();
    for (const [key, value] of sorted) seen.set(key, value);
  };
  const element = h("section", { "aria-labelledby": "steps-title" }, h("h2", { id: "steps-title" }, "Recorded steps"),
    h("div", { class: "scroll", tabindex: 0, role: "region", "aria-labelledby": "steps-title" },
      h("table", { id: "steps" }, h("caption", { class: "unseen" }, "Steps that a takeover does not execute again"),
        h("thead", {}, h("tr", {}, ["Step", "Kind", "Outcome", "Attempt", "Worker", "Recorded"].map((name) => h("th", { scope: "col" }, name)))),
        rows)));
  return { element, add };
}

function before(a, b) {
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}

function steeringPanel(runId, watched) {
  const path = `api/runs/${encodeURIComponent(runId)}`;
  const cancel = action("Cancel this run", async () => {
    await request("POST", `${path}/cancel`, { reason: "asked for on the page" });
    announce("Cancellation is requested");
  }, { class: "danger" });
  const who = h("input", { name: "by", required: true, autocomplete: "name", maxlength: 200 });
  const comment = h("input", { name: "comment", maxlength: 2000 });
  // One decision is one signal, however often the button is pressed or the request is repeated.
  let decision = crypto.randomUUID?.() ?? String(Math.random());
  const decide = (approved) => async () => {
    if (!who.reportValidity()) return;
    await request("POST", `${path}/approve`, { approved, by: who.value, comment: comment.value, signal_id: decision });
    decision = crypto.randomUUID?.() ?? String(Math.random());
    announce(approved ? "Approved" : "Refused");
  };
  const approve = action("Approve", decide(true), { class: "primary" });
  const refuse = action("Refuse", decide(false));
  const approval = h("fieldset", { hidden: true }, h("legend", {}, "The agent waits for a person"),
    h("label", {}, "Your name", who), h("label", {}, "Comment (optional)", comment),
    h("div", { class: "buttons" }, approve.button, refuse.button, approve.error, refuse.error));
  const result = h("div", { class: "result" });
  const draw = () => {
    const run = watched.run;
    if (!run) return;
    cancel.button.hidden = FINAL.has(run.state) || run.cancel_requested;
    approval.hidden = run.state !== "waiting";
  };
  const element = h("section", { "aria-label": "Steer this run" }, approval, h("div", { class: "buttons" }, cancel.button, cancel.error), result);
  return { element, draw, result };
}

async function showResult(runId, steering) {
  const answer = await request("GET", `api/runs/${encodeURIComponent(runId)}/result`);
  const text = answer.failure ?? JSON.stringify(answer.result, null, 2);
  steering.result.replaceChildren(h("h2", {}, answer.failure ? "Why it failed" : "Result"),
    h("pre", { tabindex: 0, "aria-label": "Result" }, answer.state === "cancelled" ? "The run was cancelled." : text));
}
