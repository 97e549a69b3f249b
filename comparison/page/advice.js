// The measured figures and the reader's numbers make a year's money, for each way to run each arm.
const arms = JSON.parse(document.getElementById("figures").textContent);
const money = (v) => "$" + Math.round(v).toLocaleString("en-US");
const range = (low, high) => (Math.round(low) === Math.round(high) ? money(high)
  : money(low) + "–" + money(high).slice(1));
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
  return [
    {how: arm.arm + ", Temporal Cloud", plan: cloud.plan, hours: read("cloud"),
      bill: 12 * cloud.month, gap: arm.gap},
    {how: arm.arm + ", a cluster of your own", hours: read("cluster"), bill: 12 * read("servers")},
  ];
}

function year(arm, beat, runs) {
  const orphans = 365 * read("crashes") * read("hand");
  const price = (tokens) =>
    orphans * (tokens.sent * read("tokens_in") + tokens.received * read("tokens_out")) / 1e6;
  const duplicates = [price(arm.answered), price(arm.begun)];
  const recovery = orphans * (arm.stood || 0) / 3600 * read("waiting");
  return waysToRun(arm, beat, runs).map((way) => {
    const work = 12 * way.hours * read("hour");
    return {...way, duplicates, recovery, never: arm.never, work, total: duplicates[1] + recovery + work + way.bill};
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

function whatWouldChangeIt(rows) {
  const said = [];
  const own = rows.filter((r) => r.own).sort((a, b) => a.total - b.total)[0];
  const other = rows.filter((r) => !r.own).sort((a, b) => a.total - b.total)[0];
  if (!own || !other) return "";
  if (read("hour") > 0) {
    const hours = read("own") + (other.total - own.total) / (12 * read("hour"));
    said.push(hours > 0
      ? own.how + " and " + other.how + " cost the same if the store of your own took " +
        hours.toFixed(1) + " hours a month instead of " + read("own") + "."
      : "At this volume a store of your own costs more even if nobody has to look after it.");
  }
  const cloud = rows.find((r) => r.plan);
  const runs = cloud && volumeAt(cloud.how, own.total);
  if (runs > 0) {
    said.push("A store of your own and Temporal Cloud cost the same at " +
      Math.round(runs).toLocaleString("en-US") + " investigations a day; Temporal Cloud is the " +
      "cheaper one below that.");
  }
  return said.join(" ");
}

const ofAll = (beat, runs = read("runs")) => arms.flatMap((arm) => year(arm, beat, runs));
const cheapest = (rows) => [...rows].sort((a, b) => a.total - b.total)[0];

function whatHeartbeatsDo(rows) {
  const cloud = rows.find((r) => r.plan);
  if (!cloud) return "";
  const bill = (beat) => ofAll(beat).find((r) => r.how === cloud.how).bill;
  const beat = read("beat");
  const best = cheapest(rows).how, tested = cheapest(ofAll(cloud.gap)).how;
  return "Temporal Cloud's cheaper plan here is " + cloud.plan + ". " + (beat > 0 ?
    "Heartbeats every " + beat + " s are " + money(cloud.bill - bill(0)) + " of its " :
    "Without heartbeats its bill is ") + money(cloud.bill) + " a year; every " + cloud.gap +
    " s, as this test set them, the bill would be " + money(bill(cloud.gap)) +
    ", and the cheapest way " + (best === tested ? "the same." : tested + ".");
}

function show() {
  const rows = ofAll(read("beat"));
  document.getElementById("year").innerHTML = rows.map((r) =>
    "<tr><th>" + r.how + (r.plan ? " (" + r.plan + " plan)" : "") + "</th>" +
    [range(...r.duplicates), (r.never ? "at least " : "") + money(r.recovery), money(r.work), money(r.bill), money(r.total)]
      .map((cell) => "<td>" + cell + "</td>").join("") + "</tr>").join("");
  const [best, second] = [...rows].sort((a, b) => a.total - b.total);
  if (!second) return;
  const gap = second.total - best.total;
  document.getElementById("advice").textContent = (gap < 0.1 * best.total
    ? "With these numbers " + best.how + " and " + second.how + " cost about the same, " +
      money(best.total) + " a year: choose by what you can look after, not by this sum."
    : "With these numbers " + best.how + " is the cheapest, by " + money(gap) + " a year before " +
      second.how + ".")
    + " " + whatWouldChangeIt(rows) + " " + whatHeartbeatsDo(rows);
}

document.querySelectorAll("#inputs input").forEach((i) => i.addEventListener("input", show));
show();
