// Sweeps: one or two keys of design A over values, in both designs.
const CURVES = [
  ["Throughput", "Mbit/s", 1e-6, /^throughput_bps$/],
  ["Throughput", "packets/s", 1, /^throughput_pps$/],
  ["Total latency", "us", 1e6, /^total_latency\.(mean|p99)_s$/],
  ["Delay", "us", 1e6, /^delay\.(mean|p99)_s$/],
  ["Load", "per cent of the time", 100, /^(processor\..+\.load|bus\.load|stages\..+\.utilisation)$/],
  ["Packets lost", "packets", 1, /^lost$/],
  ["Loss", "per cent", 100, /^loss_probability$/],
];
/** Runs of a sweep at most. */
const RUNS_MAX = 400;
const pathOf = (one) => (one.group.path ? `${one.group.path}.${one.key}` : one.key);
/** The controls of both parameters: their key, and the fields of their values. */
const AXES = [
  { key: "#key", from: "#from", to: "#to", points: "#points", units: ".unit-1", first: "traffic.rate" },
  { key: "#key-2", from: "#from-2", to: "#to-2", points: "#points-2", units: ".unit-2", first: "" },
];
function sweepable(axis) {
  const now = $(axis.key).value || axis.first;
  const list = values(designs.a.text).filter((one) => one.number !== undefined && Number(one.number.replaceAll("_", "")) > 0);
  const options = list.map((one) => make("option", { value: pathOf(one), selected: pathOf(one) === now }, `${one.group.title}: ${one.key}${one.shown ? ` (${one.shown})` : ""}`));
  if (axis.first === "") options.unshift(make("option", { value: "", selected: now === "" }, "none: curves"));
  $(axis.key).replaceChildren(...options);
  return list;
}
const chosen = (axis) => sweepable(axis).find((one) => pathOf(one) === $(axis.key).value);
/** Puts a range around the value that the scenario has. */
function aroundKey(axis) {
  const one = chosen(axis);
  for (const id of [axis.from, axis.to, axis.points]) $(id).disabled = !one;
  for (const unit of document.querySelectorAll(axis.units)) unit.textContent = one?.shown ?? "";
  if (!one) return;
  const value = Number(one.number.replaceAll("_", ""));
  $(axis.from).value = isWhole(one) ? Math.max(1, Math.round(value / 4)) : Number((value / 4).toPrecision(3));
  $(axis.to).value = isWhole(one) ? Math.max(8, value * 4) : Number((value * 4).toPrecision(3));
}
/** The values of a parameter, or `null` if its fields say none. */
function pointsOf(axis, one) {
  const [from, to, count] = [axis.from, axis.to, axis.points].map((id) => Number($(id).value));
  if (!(from > 0 && to > from && Number.isInteger(count) && count >= 2 && count <= 50)) return null;
  const all = Array.from({ length: count }, (_, at) => from * (to / from) ** (at / (count - 1)));
  return [...new Set(all.map((value) => (isWhole(one) ? Math.round(value) : Number(value.toPrecision(4)))))];
}
const pool = [];
/** Runs many texts on all processors and shows their answers, which are in the order of the texts; where they were stopped or one was
 *  refused, the status says so. */
async function runAll(jobs, named, show) {
  busy(true);
  while (pool.length < Math.min(4, navigator.hardwareConcurrency || 2)) pool.push(new Runner());
  let next = 0, done = 0, stopped = false, fault = null;
  const answers = [];
  await Promise.all(pool.map(async (runner) => {
    while (next < jobs.length && !stopped && !fault) {
      const at = next++, { text, request } = jobs[at];
      const answer = await runner.run(text, request);
      if (!answer) stopped = true;
      else if (answer.fault) fault = { at, fault: answer.fault };
      else answers[at] = answer.results;
      $("#progress").value = ++done / jobs.length;
      status(`${done} of ${jobs.length} runs`);
    }
  }));
  if (fault) {
    const first = fault.fault.findings[0] ?? fault.fault;
    status(`${named(fault.at)}: ${first.message}. ${first.help}`);
  } else if (stopped) {
    status("stopped");
  } else {
    await show(answers);
    status(`${jobs.length} runs`);
  }
  busy(false);
}
/** Puts drawings, as the module describes them, into a box. */
async function drawInto(box, drawings) {
  box.innerHTML = (await checker.plots(drawings)).join("");
  window.forebayPlots(box);
}
async function sweep() {
  const keys = AXES.map(chosen);
  const [xs, ys] = AXES.map((axis, at) => (keys[at] ? pointsOf(axis, keys[at]) : [null]));
  if (!keys[0] || !xs || !ys) return status("A sweep goes from a number above 0 to a greater one, in 2 to 50 points.");
  if (keys[1] && pathOf(keys[0]) === pathOf(keys[1])) return status("A sweep of two parameters has two different ones.");
  const list = shown(), set = (one, value) => `${pathOf(one)}=${value}${one.unit ? ` ${one.unit}` : ""}`;
  const jobs = list.flatMap((design) => ys.flatMap((y) => xs.map((x) => {
    const sets = [set(keys[0], x), ...(keys[1] ? [set(keys[1], y)] : [])];
    return { design, sets, text: design.text, request: { name: design.name, solve: solves(), sets } };
  })));
  if (jobs.length > RUNS_MAX) return status(`That is ${jobs.length} runs; a sweep has ${RUNS_MAX} at most.`);
  const named = (at) => (list.length > 1 ? "AB"[at] : "");
  await runAll(jobs, (at) => `Design ${jobs[at].design.letter.toUpperCase()} with ${jobs[at].sets.join(", ")}`, (answers) => {
    // Rows of both designs, each with the answers over the first parameter.
    const rows = Array.from({ length: list.length * ys.length }, (_, at) => answers.slice(at * xs.length, (at + 1) * xs.length));
    const of = list.map((_, at) => rows.slice(at * ys.length, (at + 1) * ys.length));
    return drawInto($("#curves"), keys[1] ? maps(keys, xs, ys, of, named) : curves(keys[0], xs, rows, named));
  });
}
/** Whether a linear axis would show the largest values only; the reports draw the line there too. */
function farApart(series) {
  const ys = series.flatMap((one) => one.ys).filter(Number.isFinite);
  return Math.min(...ys) > 0 && Math.max(...ys) / Math.min(...ys) >= 40;
}
const axisOf = (one) => `${one.group.title}: ${one.key}${one.shown ? ` (${one.shown})` : ""}`;
const shortOf = (name) => name.match(/\.(mean|p99)_s$/)?.[1].replace("p99", "99 %") ?? name.replace(/^(processor|stages)\.|\.(load|utilisation)$/g, "");
const valueOf = (results, name, factor) => (figure(results, name)?.value ?? NaN) * factor;
function curves(one, xs, rows, named) {
  const all = rows[0][0].figures.map((figure) => figure.name);
  return CURVES.flatMap(([title, y, factor, pattern]) => {
    const matching = all.filter((name) => pattern.test(name)).slice(0, Math.floor(8 / rows.length));
    const series = rows.flatMap((row, at) => matching.map((name) => {
      const words = [named(at), matching.length > 1 ? shortOf(name) : ""].filter(Boolean).join(" ");
      return { name: words || title, xs, ys: row.map((results) => valueOf(results, name, factor)) };
    }));
    return series.length ? [{ plot: { title, y, x: axisOf(one), log_x: xs.at(-1) / xs[0] >= 10, log_y: farApart(series), series } }] : [];
  });
}
/** A map for each figure and design: the first parameter across, the second one down. */
function maps(keys, xs, ys, of, named) {
  const all = of[0][0][0].figures.map((figure) => figure.name);
  const text = (values) => values.map((value) => value.toLocaleString("en", { maximumSignificantDigits: 4 }));
  return CURVES.flatMap(([title, unit, factor, pattern]) => all.filter((name) => pattern.test(name)).slice(0, 4).flatMap((name) => of.flatMap((rows, at) => {
    const words = [named(at), title, shortOf(name) === name ? "" : shortOf(name)].filter(Boolean).join(" ");
    const values = rows.map((row) => row.map((results) => valueOf(results, name, factor)));
    // What is the same everywhere says nothing.
    if (new Set(values.flat()).size < 2) return [];
    return [{ heat: { title: `${words} (${unit})`, unit, x: axisOf(keys[0]), y: axisOf(keys[1]), columns: text(xs), rows: text(ys), values } }];
  })));
}
