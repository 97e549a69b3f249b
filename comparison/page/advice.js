// The measured figures and the reader's numbers make a year's money, for each way to run each arm.
const arms = JSON.parse(document.getElementById("figures").textContent);
const money = (v) => "$" + Math.round(v).toLocaleString("en-US");
const range = (low, high) => (Math.round(low) === Math.round(high) ? money(high)
  : money(low) + "–" + money(high).slice(1));
const read = (name) => Number(document.getElementById("in-" + name).value) || 0;

function actionsOfRun(arm) {
  // Calls longer than the measured ones beat more often: one action for each gap between two beats.
  const longer = Math.max(0, read("calling") - arm.calling);
  return arm.actions + longer / arm.gap;
}

function waysToRun(arm) {
  if (arm.engine !== "temporal") {
    return [{how: arm.arm, hours: read("own"), bill: 12 * read("database"), own: true}];
  }
  const usage = 365 / 12 * read("runs") * actionsOfRun(arm) / 1e6 * read("million");
  const plan = Math.max(read("least"), usage * read("plan") / 100);
  return [
    {how: arm.arm + ", Temporal Cloud", hours: read("cloud"), bill: 12 * (usage + plan),
      usage: 12 * usage},
    {how: arm.arm + ", a cluster of your own", hours: read("cluster"), bill: 12 * read("servers")},
  ];
}

function year(arm) {
  const orphans = 365 * read("crashes") * read("hand");
  const price = (tokens) =>
    orphans * (tokens.sent * read("tokens_in") + tokens.received * read("tokens_out")) / 1e6;
  const duplicates = [price(arm.answered), price(arm.begun)];
  const recovery = orphans * (arm.stood || 0) / 3600 * read("waiting");
  return waysToRun(arm).map((way) => {
    const work = 12 * way.hours * read("hour");
    return {...way, duplicates, recovery, work, total: duplicates[1] + recovery + work + way.bill};
  });
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
  const cloud = rows.find((r) => r.usage > 0);
  if (cloud && own.total > cloud.total - cloud.usage) {
    // As if the plan's least price did not change: exact as long as it is what is paid.
    const runs = read("runs") * (own.total - cloud.total + cloud.usage) / cloud.usage;
    said.push("A store of your own and Temporal Cloud cost about the same at " +
      Math.round(runs).toLocaleString("en-US") + " investigations a day; Temporal Cloud is the " +
      "cheaper one below that.");
  }
  return said.join(" ");
}

function show() {
  const rows = arms.flatMap(year);
  document.getElementById("year").innerHTML = rows.map((r) =>
    "<tr><th>" + r.how + "</th>" +
    [range(...r.duplicates), money(r.recovery), money(r.work), money(r.bill), money(r.total)]
      .map((cell) => "<td>" + cell + "</td>").join("") + "</tr>").join("");
  const [best, second] = [...rows].sort((a, b) => a.total - b.total);
  if (!second) return;
  const gap = second.total - best.total;
  document.getElementById("advice").textContent = (gap < 0.1 * best.total
    ? "With these numbers " + best.how + " and " + second.how + " cost about the same, " +
      money(best.total) + " a year: choose by what you can look after, not by this sum."
    : "With these numbers " + best.how + " is the cheapest, by " + money(gap) + " a year before " +
      second.how + ".")
    + " " + whatWouldChangeIt(rows);
}

document.querySelectorAll("#inputs input").forEach((i) => i.addEventListener("input", show));
show();
