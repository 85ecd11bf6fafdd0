// The page: two designs, runs and their results. The figures, plots and findings come from the module; nothing is computed here.
// ---- The address.
async function address() {
  const state = { a: designs.a.text, ...(two() ? { b: designs.b.text } : {}) };
  const url = new URL(location.href);
  url.hash = `s=${await packed(JSON.stringify(state))}`;
  history.replaceState(null, "", url);
  return url.href;
}
async function fromAddress() {
  const text = location.hash.match(/^#s=([\w-]+)$/)?.[1];
  if (!text) return false;
  try {
    const state = JSON.parse(await unpacked(text));
    if (typeof state.a !== "string") throw new Error("no scenario");
    designs.a.set(state.a);
    if (typeof state.b === "string") designs.b.set(state.b);
    compare(typeof state.b === "string");
    return true;
  } catch {
    status("The address holds no scenario that can be read: it may have been cut.");
    return false;
  }
}

// ---- Running.
const solves = () => $("#way").value === "solve";
const two = () => $("#compare").checked;
function compare(both) {
  $("#compare").checked = both;
  $('[data-design="b"]').hidden = !both;
  $("#designs").classList.toggle("two", both);
  if (both && !designs.b.text) designs.b.set(designs.a.text);
}
const shown = () => (two() ? [designs.a, designs.b] : [designs.a]);
const runners = { a: new Runner(), b: new Runner() };
const checker = new Runner();
const designs = { a: new Design("a"), b: new Design("b") };

async function run() {
  const list = shown();
  busy(true);
  const shares = list.map(() => 0);
  status("running …");
  address();
  const answers = await Promise.all(list.map((design, at) =>
    runners[design.letter].run(design.text, { name: design.name, plots: !solves(), beginning: solves() ? 0 : BEGINNING, solve: solves() }, (share) => {
      shares[at] = share;
      $("#progress").value = Math.min(...shares);
    })));
  busy(false);
  window.forebayAnswers = answers;
  if (answers.includes(null)) {
    status("stopped");
    return;
  }
  list.forEach((design, at) => design.say(answers[at].fault));
  const faults = answers.filter((one) => one.fault);
  $("#progress").value = faults.length ? 0 : 1;
  if (faults.length) {
    const at = answers.indexOf(faults[0]);
    status(`${list.length > 1 ? `Design ${"AB"[at]}: ` : ""}${faults[0].fault.message}`);
    return;
  }
  const words = answers.map((one, at) => {
    const seconds = one.took_ms / 1000, packets = one.results.packets;
    const rate = packets && seconds > 0 ? `, ${Math.round(packets / seconds).toLocaleString("en")} packets/s` : "";
    if (!packets) return `${list.length > 1 ? `${"AB"[at]}: ` : ""}solved in ${seconds.toFixed(2)} s`;
    return `${list.length > 1 ? `${"AB"[at]}: ` : ""}${packets.toLocaleString("en")} packets in ${seconds.toFixed(2)} s${rate}`;
  });
  status(words.join("; "));
  results(list, answers.map((one) => one.results));
}

function results(list, all) {
  const side = (one, at) => {
    const box = make("div", { class: "side" });
    const tag = all.length > 1 ? [make("span", { class: "tag" }, "AB"[at]), " "] : [];
    box.append(make("h2", { class: "verdict" }, ...tag, one.shown?.verdict ?? ""));
    for (const fact of one.shown?.facts ?? []) box.append(make("p", { class: "intro" }, fact));
    for (const note of one.notes) box.append(make("p", { class: "how" }, `note: ${note}`));
    box.append(...film(one, one.shown?.verdict ?? ""));
    const body = make("div");
    // Written by the module, which escapes all text of the scenario.
    body.innerHTML = one.shown?.html ?? "";
    box.append(...body.childNodes);
    box.append(make("details", {}, make("summary", {}, "scenario.toml, all defaults filled in"), make("pre", {}, one.resolved)));
    box.append(make("details", {}, make("summary", {}, `figures.json, as forebay ${solves() ? "solve" : "simulate"} --json prints it`), make("pre", {}, one.document)));
    return box;
  };
  const sides = make("div", { class: all.length > 1 ? "sides two" : "sides" }, ...all.map(side));
  const downloads = make("div", { class: "row" },
    make("button", { type: "button", onclick: () => save("figures.csv", "text/csv", csv(all)) }, "Figures as CSV"),
    ...all.map((one, at) => make("button", { type: "button", onclick: () => save(`figures${all.length > 1 ? `-${"ab"[at]}` : ""}.json`, "application/json", `${one.document}\n`) }, `Figures as JSON${all.length > 1 ? ` (${"AB"[at]})` : ""}`)));
  const root = $("#results");
  root.hidden = false;
  root.replaceChildren(make("h2", {}, all.length > 1 ? "Results, side by side" : "Results"), table(all), downloads, sides);
  window.forebayPlots(root);
}
/** Names in the order in which they come, of both. */
const names = (all) => [...new Set(all.flatMap((one) => one.figures.map((figure) => figure.name)))];
const figure = (one, name) => one.figures.find((figure) => figure.name === name);
/** How one figure differs from another: a per cent, or how many times as much if it is far more. */
function change(a, b) {
  if (a === b && a !== undefined) return "=";
  const times = b / a;
  if (!Number.isFinite(times)) return "–";
  return times >= 10 ? `× ${times.toPrecision(3)}` : `${times > 1 ? "+" : ""}${(100 * (times - 1)).toFixed(1)} %`;
}
function table(all) {
  const head = ["figure", ...(all.length > 1 ? ["A", "B", "B to A"] : ["value"])];
  const row = (name) => {
    const found = all.map((one) => figure(one, name));
    const cells = found.map((one) => make("td", one ? { title: String(one.value) } : {}, one?.text ?? "–"));
    if (all.length > 1) {
      const [a, b] = found.map((one) => one?.value);
      cells.push(make("td", {}, change(a, b)));
    }
    // Long names are broken behind their parts.
    const parts = name.split(/(?<=[._])/).flatMap((part, at) => (at ? [make("wbr"), part] : [part]));
    return make("tr", {}, make("td", {}, ...parts), ...cells);
  };
  const caption = make("caption", {}, "All figures; the same seed draws the same packets in both designs");
  if (all.length < 2) caption.textContent = "All figures";
  return make("div", { class: "scroll figures", tabindex: "0", role: "region", "aria-label": "All figures" },
    make("table", {}, caption, make("thead", {}, make("tr", {}, ...head.map((word) => make("th", {}, word)))), make("tbody", {}, ...names(all).map(row))));
}
function csv(all) {
  const rows = [["figure", ...(all.length > 1 ? ["a", "b"] : ["value"])]];
  for (const name of names(all)) rows.push([name, ...all.map((one) => figure(one, name)?.value ?? "")]);
  const field = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
}

const busy = (on) => {
  for (const one of document.querySelectorAll("#run, #sweep-run, #paper-list button")) one.disabled = on;
  $("#stop").disabled = !on;
  if (on) $("#progress").value = 0;
};
$("#sweep-run").addEventListener("click", sweep);
for (const axis of AXES) $(axis.key).addEventListener("change", () => aroundKey(axis));
$("#sweep").addEventListener("toggle", () => $("#sweep").open && AXES.forEach(aroundKey));
$("#run").addEventListener("click", run);
$("#stop").addEventListener("click", () => [...Object.values(runners), ...pool].forEach((one) => one.stop()));
$("#compare").addEventListener("change", () => compare(two()));
$("#link").addEventListener("click", async () => {
  const url = await address();
  try {
    await navigator.clipboard.writeText(url);
    status("The link is copied; it holds the scenario.");
  } catch {
    status("The link is in the address bar; it holds the scenario.");
  }
});
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && !$("#run").disabled) run();
});
addEventListener("hashchange", fromAddress);
$("#made").textContent = `forebay ${version}. Download a design as TOML, and forebay simulate gives the same figures.`;
listPapers();
if (!(await fromAddress())) designs.a.set(scenarios[0].text);
// For tests: a text run as the page runs it.
window.forebayRun = (text, request) => runners.a.run(text, request);
window.forebayReady = performance.now();
document.documentElement.dataset.ready = "yes";
