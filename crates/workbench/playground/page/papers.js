// The papers' figures: runs of a study and the formulas over their figures, as scripts/paper_figures.py found them in it, and the
// values that the papers print.
const PAPERS = { H: "packet scheduling, multi-accelerator", S: "small packets", N: "network processor", G: "inline card, HDTV" };
const LISTS = ["processors", "classes", "stages", "servers", "resources"];
/** The value at a path of a document; elements of lists are found by their names, which may have dots in them. */
function at(value, path) {
  const inside = (step) => {
    if (value === null || typeof value !== "object") return undefined;
    if (step in value && !LISTS.includes(step)) return value[step];
    return LISTS.flatMap((name) => value[name] ?? []).find((one) => one?.name === step);
  };
  const whole = inside(path);
  if (whole !== undefined) return whole;
  for (let dot = path.indexOf("."); dot >= 0; dot = path.indexOf(".", dot + 1)) {
    const outer = inside(path.slice(0, dot));
    const found = outer === undefined ? undefined : at(outer, path.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}
const APPLIED = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b };
/** The value of a formula over the documents of the runs. */
function computed(formula, documents) {
  if (!Array.isArray(formula)) return formula;
  const [what, left, right] = formula;
  return what === "run" ? at(documents[left], right) : APPLIED[what](computed(left, documents), computed(right, documents));
}
/** What a study sets of the packets: by themselves, or with all of the traffic. */
const PACKETS = /^(traffic\.packets=|traffic=.*\bpackets = )([0-9_]+)/;
/** A scenario with what a study sets in it, and with a share of its packets. */
function jobOf({ scenario, sets, solve }, share) {
  const { text } = scenarios.find((one) => one.name === scenario);
  const said = sets.findLast((one) => PACKETS.test(one))?.match(PACKETS) ?? text.match(/^(packets = )([0-9_]+)/m);
  const packets = Number((said?.[2] ?? "0").replaceAll("_", ""));
  const fewer = share < 1 && packets > 0 ? [`traffic.packets=${Math.max(1, Math.round(packets * share))}`] : [];
  return { text, request: { name: `${scenario}.toml`, solve, sets: [...sets, ...fewer] } };
}
async function paper(one) {
  const jobs = one.runs.map((run) => jobOf(run, Number($("#share").value)));
  await runAll(jobs, (number) => `${one.label}, ${jobs[number].request.sets.join(", ")}`, (answers) => showPaper(one, answers));
}
async function showPaper(one, answers) {
  const documents = answers.map((answer) => JSON.parse(answer.document));
  const series = one.plot.series.map((line) => ({ ...line, ys: line.ys.map((formula) => computed(formula, documents)) }));
  const box = $("#paper"), drawing = make("div");
  const said = one.said.map(({ quote, says, where }) => make("li", {}, make("q", {}, quote), ` ${where}. Tested: ${says}`));
  const open = make("button", { type: "button", onclick: () => { designs.a.set(answers[0].resolved); designs.a.area.focus(); } }, "First run as design A");
  box.hidden = false;
  box.replaceChildren(drawing, ...(said.length ? [make("details", {}, make("summary", {}, `What the paper says of it (${said.length})`), make("ul", { class: "said" }, ...said))] : []), make("div", { class: "row" }, open));
  await drawInto(drawing, [{ plot: { ...one.plot, series } }]);
  window.forebayPaper = series;
  drawing.querySelector("svg")?.scrollIntoView({ block: "nearest" });
}
function listPapers() {
  const rows = Object.entries(PAPERS).map(([letter, name]) => {
    const list = figures.filter((one) => one.label.startsWith(`[${letter}]`));
    const button = (one) => make("button", { type: "button", title: `${one.plot.title}: ${one.runs.length} runs`, onclick: () => paper(one) }, one.label.replace(/^\[.\] /, ""), make("span", { class: "quiet" }, ` ${one.plot.title}`));
    return list.length ? make("div", { class: "row", role: "group", "aria-label": `[${letter}] ${name}` }, make("b", {}, `[${letter}] `), ...list.map(button)) : "";
  });
  $("#paper-list").replaceChildren(...rows);
}
