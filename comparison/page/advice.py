"""What it means for you: the reader's own volume turns the measured figures into a year's money.

The measured figures go into the page as JSON; a small script does the arithmetic, so that the
reader can change every assumption. The prices and hours that are filled in are placeholders for
the reader to replace, and the page says so: this project has measured none of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from comparison.arms import find_arm
from comparison.cells import USD
from comparison.evidence import Case
from comparison.measures import Measures
from comparison.page.grid import Arms
from two_workers import RunState


def figures(cases: Sequence[Case], measures: Measures) -> dict[str, float | str | None]:
    """What one arm brings into the calculation, for each orphaned run and for each run."""
    recovery = measures.takeover["kill"]
    orphaned = max(len(measures.recoveries), 1)
    ends = [end for case in cases for end in case.evidence.ends]
    done = [end for end in ends if end.state is RunState.SUCCEEDED]
    return {
        "arm": measures.arm,
        "engine": find_arm(measures.arm).engine,
        "duplicateDollars": measures.duplicates.micro_usd[1] / USD / orphaned,
        "recoverySeconds": recovery.median.value if recovery else None,
        "steps": sum(len(end.steps) for end in done) / len(done) if done else 0.0,
    }


INPUTS = (
    ("runs", "investigations a day", 2000, 1),
    ("crashes", "worker deaths a day (deploys, spot machines, out of memory)", 10, 1),
    ("hand", "investigations that a worker has in hand when it dies", 2, 1),
    ("price", "price of a model call, in measured prices (1 = as in this run)", 1, 0.1),
    ("waiting", "cost of one investigation that stands still for an hour, $", 20, 1),
    ("hour", "an engineer's hour, $", 100, 5),
    ("table", "hours a month to look after a store of your own", 8, 1),
    ("temporal", "hours a month to look after a Temporal cluster (0 with Temporal Cloud)", 0, 1),
    ("cloud", "Temporal Cloud, $ a month before actions", 100, 10),
    ("million", "Temporal Cloud, $ for a million actions", 50, 5),
)

SCRIPT = """
const arms = JSON.parse(document.getElementById("figures").textContent);
const money = (v) => "$" + Math.round(v).toLocaleString("en-US");
function year() {
  const get = (name) => Number(document.getElementById("in-" + name).value) || 0;
  const crashes = 365 * get("crashes");
  const rows = arms.map((arm) => {
    const own = arm.engine !== "temporal";
    const orphans = crashes * get("hand");
    const duplicates = orphans * arm.duplicateDollars * get("price");
    const waiting = orphans * (arm.recoverySeconds || 0) / 3600 * get("waiting");
    const hours = 12 * get("hour") * get(own ? "table" : "temporal");
    const actions = own ? 0 : 365 * get("runs") * (1 + arm.steps);
    const vendor = own ? 0 : 12 * get("cloud") + actions / 1e6 * get("million");
    return {arm: arm.arm, duplicates, waiting, hours, vendor, actions,
            total: duplicates + waiting + hours + vendor};
  });
  document.getElementById("year").innerHTML = rows.map((r) =>
    "<tr><th>" + r.arm + "</th>" +
    [r.duplicates, r.waiting, r.hours, r.vendor, r.total].map((v) => "<td>" + money(v) + "</td>")
      .join("") + "</tr>").join("");
  const best = rows.reduce((a, b) => (b.total < a.total ? b : a));
  const others = rows.filter((r) => r !== best);
  const gap = Math.min(...others.map((r) => r.total)) - best.total;
  const own = rows.find((r) => r.vendor === 0), cloud = rows.find((r) => r.vendor > 0);
  let change = "";
  if (own && cloud && get("hour") > 0) {
    const hours = get("table") + (cloud.total - own.total) / (12 * get("hour"));
    change = hours > 0
      ? " The two cost the same if the store of your own took " + hours.toFixed(1) +
        " hours a month instead of " + get("table") + "."
      : " At this volume the store of your own loses even if nobody has to look after it.";
  }
  document.getElementById("advice").textContent = others.length === 0 ? "" :
    best.arm + " is the cheaper one for you, by " + money(gap) + " a year." + change +
    (gap < 0.1 * best.total ? " That is less than a tenth: choose by what you can look after, " +
     "not by this sum." : "");
}
document.querySelectorAll("#inputs input").forEach((i) => i.addEventListener("input", year));
year();
"""


def advice(arms: Arms, measures: Sequence[Measures]) -> str:
    """The section with its inputs, its table and its script."""
    found = [figures(arms[m.arm], m) for m in measures]
    data = json.dumps(found).replace("<", "\\u003c")
    inputs = "".join(
        f'<label>{label}<input id="in-{name}" type="number" min="0" step="{step}" '
        f'value="{value}"></label>'
        for name, label, value, step in INPUTS
    )
    steps = ", ".join(f"{f['steps']:.1f} on {f['arm']}" for f in found)
    return f"""
<p>Change every number to your own. Those filled in are places to write in, not findings: this
report measured none of them. What it measured and uses: duplicate dollars and waiting time for
each orphaned run, and the steps of a run ({steps}), each of which is an action to Temporal Cloud
beside the start; heartbeats and retries come on top.</p>
<form id="inputs">{inputs}</form>
<div class="wide"><table><thead><tr><th>a year with</th><th>duplicates</th><th>waiting</th>
<th>looking after it</th><th>vendor</th><th>together</th></tr></thead>
<tbody id="year"></tbody></table></div>
<p id="advice" class="advice"></p>
<p>What would change it beyond the sum: a table commits together with your own data and needs no
second system; Temporal brings timers, signals, versioning and an interface that a store of your
own would have to grow, and people elsewhere who are on call for it. Duplicates and waiting are
rarely what decides: compare the first two columns with the others.</p>
<script type="application/json" id="figures">{data}</script>
<script>{SCRIPT}</script>
"""
