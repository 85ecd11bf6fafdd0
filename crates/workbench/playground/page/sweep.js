// Sweeps: one key of design A over values, in both designs.
const CURVES = [
  ["Throughput", "Mbit/s", 1e-6, /^throughput_bps$/],
  ["Throughput", "packets/s", 1, /^throughput_pps$/],
  ["Total latency", "us", 1e6, /^total_latency\.(mean|p99)_s$/],
  ["Delay", "us", 1e6, /^delay\.(mean|p99)_s$/],
  ["Load", "per cent of the time", 100, /^(processor\..+\.load|bus\.load|stages\..+\.utilisation)$/],
  ["Packets lost", "packets", 1, /^lost$/],
  ["Loss", "per cent", 100, /^loss_probability$/],
];
const pathOf = (one) => (one.group.path ? `${one.group.path}.${one.key}` : one.key);
function sweepable() {
  const now = $("#key").value || "traffic.rate";
  const list = values(designs.a.text).filter((one) => one.number !== undefined && Number(one.number.replaceAll("_", "")) > 0);
  $("#key").replaceChildren(...list.map((one) => make("option", { value: pathOf(one), selected: pathOf(one) === now }, `${one.group.title}: ${one.key}${one.unit ? ` (${one.unit})` : ""}`)));
  return list;
}
/** Puts a range around the value that the scenario has. */
function aroundKey() {
  const one = sweepable().find((one) => pathOf(one) === $("#key").value);
  if (!one) return;
  const value = Number(one.number.replaceAll("_", "")), whole = /^[0-9_]+$/.test(one.number) && !one.unit;
  $("#from").value = whole ? Math.max(1, Math.round(value / 4)) : Number((value / 4).toPrecision(3));
  $("#to").value = whole ? Math.max(8, value * 4) : Number((value * 4).toPrecision(3));
}
function points(one) {
  const [from, to, count] = ["#from", "#to", "#points"].map((id) => Number($(id).value));
  if (!(from > 0 && to > from && Number.isInteger(count) && count >= 2 && count <= 50)) return null;
  const whole = /^[0-9_]+$/.test(one.number) && !one.unit;
  const all = Array.from({ length: count }, (_, at) => from * (to / from) ** (at / (count - 1)));
  return [...new Set(all.map((value) => (whole ? Math.round(value) : Number(value.toPrecision(4)))))];
}
const pool = [];
async function sweep() {
  const one = sweepable().find((one) => pathOf(one) === $("#key").value);
  const xs = one && points(one);
  if (!xs) return status("A sweep goes from a number above 0 to a greater one, in 2 to 50 points.");
  busy(true);
  while (pool.length < Math.min(4, navigator.hardwareConcurrency || 2)) pool.push(new Runner());
  const list = shown(), jobs = list.flatMap((design, at) => xs.map((x) => ({ design, at, x })));
  let next = 0, done = 0, stopped = false, fault = null;
  const answers = list.map(() => new Map());
  await Promise.all(pool.map(async (runner) => {
    while (next < jobs.length && !stopped && !fault) {
      const { design, at, x } = jobs[next++];
      const answer = await runner.run(design.text, { name: design.name, solve: solves(), sets: [`${pathOf(one)}=${x}${one.unit ? ` ${one.unit}` : ""}`] });
      if (!answer) stopped = true;
      else if (answer.fault) fault = { design, x, fault: answer.fault };
      else answers[at].set(x, answer.results);
      $("#progress").value = ++done / jobs.length;
      status(`${done} of ${jobs.length} runs`);
    }
  }));
  if (fault) {
    const first = fault.fault.findings[0] ?? fault.fault;
    status(`Design ${fault.design.letter.toUpperCase()} with ${pathOf(one)} = ${fault.x}: ${first.message}. ${first.help}`);
  } else if (stopped) {
    status("stopped");
  } else {
    const box = $("#curves");
    box.innerHTML = (await checker.plots(curves(one, xs, answers))).join("");
    window.forebayPlots(box);
    status(`${jobs.length} runs`);
  }
  busy(false);
}
/** Whether a linear axis would show the largest values only; the reports draw the line there too. */
function farApart(series) {
  const ys = series.flatMap((one) => one.ys).filter(Number.isFinite);
  return Math.min(...ys) > 0 && Math.max(...ys) / Math.min(...ys) >= 40;
}
function curves(one, xs, answers) {
  const names = answers[0].get(xs[0]).figures.map((figure) => figure.name);
  return CURVES.flatMap(([title, y, factor, pattern]) => {
    const matching = names.filter((name) => pattern.test(name)).slice(0, Math.floor(8 / answers.length));
    const series = answers.flatMap((of, at) => matching.map((name) => {
      const short = name.match(/\.(mean|p99)_s$/)?.[1].replace("p99", "99 %") ?? name.replace(/^(processor|stages)\.|\.(load|utilisation)$/g, "");
      const words = [answers.length > 1 ? "AB"[at] : "", matching.length > 1 ? short : ""].filter(Boolean).join(" ");
      return { name: words || title, xs, ys: xs.map((x) => (of.get(x).figures.find((figure) => figure.name === name)?.value ?? NaN) * factor) };
    }));
    return series.length ? [{ title, y, x: `${one.key}${one.unit ? ` (${one.unit})` : ""}`, log_x: xs.at(-1) / xs[0] >= 10, log_y: farApart(series), series }] : [];
  });
}
