// The measured figures and the reader's numbers make a year's money, for each way to run each arm.
const arms = JSON.parse(document.getElementById("figures").textContent);
const money = (v) => "$" + Math.round(v).toLocaleString("en-US");
const range = (low, high) => (Math.round(low) === Math.round(high) ? money(high)
  : money(low) + "–" + money(high).slice(1));
const list = (names) =>
  [names.slice(0, -1).join(", "), ...names.slice(-1)].filter(Boolean).join(" and ");
// What is no number, or less than none, counts as none.
const read = (name) => Math.max(0, Number(document.getElementById("in-" + name).value) || 0);

function actionsOfRun(arm, beat) {
  // Each step beats when it begins, and then once in each interval. Without an interval, not at all.
  return arm.actions + (beat > 0 ? arm.steps + read("calling") / beat : 0);
}

// The bill of a month of so many million actions, by plan.
function plans(actions) {
  const share = read("plan") / 100;
  const developer = actions * read("million") * (1 + share);
  const beyond = Math.max(0, actions - read("included"));
  const usage = Math.min(beyond, 5) * read("million") + Math.max(0, beyond - 5) * read("beyond");
  const fee = Math.max(read("least"), usage * share);
  return [
    {plan: "Developer", month: developer},
    {plan: "Business", month: usage + fee},
  ];
}

function waysToRun(arm, beat, runs) {
  if (arm.engine !== "temporal") {
    return [{how: arm.arm, hours: read("own"), bill: 12 * read("database"), own: true}];
  }
  const actions = 365 / 12 * runs * actionsOfRun(arm, beat) / 1e6;
  const [cloud] = plans(actions).sort((a, b) => a.month - b.month);
  const ways = [
    {how: arm.arm + " on Temporal Cloud", plan: cloud.plan, hours: read("cloud"),
      bill: 12 * cloud.month},
    {how: arm.arm + " on a cluster of your own", hours: read("cluster"), bill: 12 * read("servers")},
  ];
  // Nobody sets the server's own settings on Temporal Cloud.
  return arm.cluster_only ? ways.slice(1) : ways;
}

// For how long an orphaned run stands still, and what is to be said of that. With the heartbeats of
// the test it was measured, if somebody was killed there. With the reader's own it follows from the
// timeout that belongs to them, by the law that the report's bands come from, and from how long ago
// the last heartbeat was: a call shorter than the interval beats only when it begins. Without any, a
// death is noticed when the step itself has run out of time: nobody knows when that is.
function standing(arm, beat) {
  if (arm.engine !== "temporal" || beat === arm.gap) {
    return arm.stood === null ? {seconds: arm.expected, least: "", how: "predicted"}
      : {seconds: arm.stood, least: arm.never ? "at least " : "", how: "measured"};
  }
  const timeout = Math.max(beat / arm.throttle, arm.shortest);
  const ago = Math.min(beat, arm.steps ? read("calling") / arm.steps : beat) / 2;
  return {seconds: beat > 0 ? timeout - ago + arm.beyond : null, least: "", how: "predicted"};
}

function year(arm, beat, runs) {
  const orphans = 365 * read("crashes") * read("hand");
  const price = (tokens) =>
    orphans * (tokens.sent * read("tokens_in") + tokens.received * read("tokens_out")) / 1e6;
  const duplicates = [price(arm.answered), price(arm.begun)];
  const stands = standing(arm, beat);
  const known = stands.seconds !== null || orphans === 0;
  const recovery = orphans * (stands.seconds || 0) / 3600 * read("waiting");
  return waysToRun(arm, beat, runs).map((way) => {
    const work = 12 * way.hours * read("hour");
    const total = duplicates[1] + recovery + work + way.bill;
    return {...way, arm, stands, known, duplicates, recovery, work, total};
  });
}

// The most investigations a day for which one way costs no more than `total` a year; 0 for none.
function volumeAt(how, total) {
  const costs = (runs) => ofAll(read("beat"), runs).find((r) => r.how === how).total;
  let [low, high] = [0, 1e8];
  if (costs(high) <= total) return 0;
  for (let i = 0; i < 60; i += 1) {
    const middle = (low + high) / 2;
    if (costs(middle) <= total) low = middle; else high = middle;
  }
  return low;
}

// Whoever broke a rule is in the table, and is not recommended; nor whose recovery is not known.
const ranked = (rows) => rows.filter((r) => r.known && !r.arm.broke.length)
  .sort((a, b) => a.total - b.total);

function whatWouldChangeIt(rows) {
  const said = [];
  const own = ranked(rows).find((r) => r.own);
  const other = ranked(rows).find((r) => !r.own);
  if (!own || !other) return "";
  if (read("hour") > 0) {
    const hours = read("own") + (other.total - own.total) / (12 * read("hour"));
    said.push(hours > 0
      ? own.how + " and " + other.how + " cost the same if the store of your own took " +
        hours.toFixed(1) + " hours a month instead of " + read("own") + "."
      : "At this volume a store of your own costs more even if nobody has to look after it.");
  }
  const cloud = ranked(rows).find((r) => r.plan);
  const runs = cloud && volumeAt(cloud.how, own.total);
  if (runs > 0) {
    said.push("A store of your own and Temporal Cloud cost the same at " +
      Math.round(runs).toLocaleString("en-US") + " investigations a day; Temporal Cloud is the " +
      "cheaper one below that.");
  }
  return said.join(" ");
}

const ofAll = (beat, runs = read("runs")) => arms.flatMap((arm) => year(arm, beat, runs));

// Of the cheapest way on Temporal Cloud: what its heartbeats cost and save; what the test's would.
function whatHeartbeatsDo(rows) {
  const cloud = ranked(rows).find((r) => r.plan);
  if (!cloud) return "";
  const beat = read("beat"), gap = cloud.arm.gap;
  const at = (interval) => ofAll(interval).find((r) => r.how === cloud.how);
  const wait = ({stands: {seconds, least, how}}) => seconds === null ? "an unknown time"
    : least + seconds.toFixed(1) + " s (" + how + ")";
  const yours = cloud.how + ", on its " + cloud.plan + " plan: " + (beat > 0
    ? "heartbeats every " + beat + " s are " + money(cloud.bill - at(0).bill) + " of a bill of "
    : "without heartbeats its bill is ") + money(cloud.bill) +
    " a year, and an orphaned run stands still for " + wait(cloud);
  if (beat === gap) return yours + ", as this test set them.";
  const best = ranked(rows)[0].how;
  const tested = ranked(arms.flatMap((arm) => year(arm, arm.gap, read("runs"))))[0];
  return yours + "; every " + gap + " s, as this test set them, the bill would be " +
    money(at(gap).bill) + " and the wait " + wait(at(gap)) + ". With every arm's heartbeats as " +
    "tested, the cheapest way is " + (tested.how === best ? "the same." : tested.how + ".");
}

// The cheapest way, or all that cost about as little: sums as rough as these do not part them.
function whatIsCheapest(rows) {
  const [best, ...others] = ranked(rows);
  if (!best) return "None is recommended: each broke a rule, or its recovery is not known.";
  const alike = [best, ...others].filter((r) =>
    r.total - best.total <= 0.1 * best.total || money(r.total) === money(best.total));
  const second = others[0];
  if (!second) {
    return "Only " + best.how + " is left to recommend, at " + money(best.total) + " a year.";
  }
  return "With these numbers " + (alike.length > 1
    ? list(alike.map((r) => r.how)) + " cost about the same, " +
      range(best.total, alike.at(-1).total) +
      " a year: choose by what you can look after, not by this sum."
    : best.how + " is the cheapest, by " + money(second.total - best.total) + " a year before " +
      second.how + ".");
}

const recoveryOf = (row) => !row.known ? "not known"
  : row.stands.least + money(row.recovery) + (row.stands.how === "predicted" ? ", predicted" : "");

function whatIsNoNumber() {
  const wrong = [...document.querySelectorAll("#inputs input")]
    .filter((i) => !(i.valueAsNumber >= 0));
  const names = wrong.map((i) => i.closest("label").querySelector("span").firstChild.textContent);
  return names.length ? "Empty or less than 0, and so taken as 0: " + names.join("; ") + "." : "";
}

function show() {
  const rows = ofAll(read("beat"));
  document.getElementById("year").innerHTML = rows.map((r) =>
    "<tr><th>" + (r.arm.broke.length ? '<span class="FAIL">✗</span> ' : "") +
    r.how + (r.plan ? " (" + r.plan + " plan)" : "") + "</th>" +
    [range(...r.duplicates), recoveryOf(r), money(r.work), money(r.bill),
      (r.known ? "" : "at least ") + money(r.total)]
      .map((cell) => "<td>" + cell + "</td>").join("") + "</tr>").join("");
  document.getElementById("unread").textContent = whatIsNoNumber();
  document.getElementById("advice").textContent = whatIsCheapest(rows);
  document.getElementById("change").textContent = whatWouldChangeIt(rows);
  document.getElementById("heartbeats").textContent = whatHeartbeatsDo(rows);
}

document.querySelectorAll("#inputs input").forEach((i) => i.addEventListener("input", show));
show();
