// Values in the text that a control may change, by the line in which they stand.
const KEYS = new Set(["seed", "packets", "duration", "rate", "offered", "mean", "value", "count", "init", "block", "throughput", "alpha", "beta",
  "queue", "window", "timeout", "burst", "input", "clock", "width", "bandwidth", "time", "buffer", "run_length", "busy", "runs", "sas", "policy"]);
/** What values count that have no unit in the text. */
const COUNTED = { packets: "packets", window: "packets", input: "packets", buffer: "packets", burst: "packets", queue: "jobs", count: "copies", sas: "SAs",
  runs: "runs", run_length: "packets", alpha: "times", busy: "of the time" };
/** The unit of a value as a control shows it: that of the text, the key's base unit, or what it counts. */
const unitOf = (model, section, key, unit) => unit || keys[model]?.[section]?.find((one) => one.key === key)?.unit || COUNTED[key];
const LINE = /^(\s*)([a-z_]+)(\s*=\s*)("[^"]*"|[-+0-9._eE]+)(\s*(?:#.*)?)$/;
/** Keys of the host model that have a control where the text leaves them to their defaults, by section. */
const DEFAULTS = { scheduler: { policy: `"${policies[0]}"`, window: "1" }, processor: { alpha: "1", beta: '"0 us"' } };
function values(text) {
  const found = [], heads = [];
  let section = "", group = null;
  const counts = {}, model = text.match(/^model\s*=\s*"([a-z-]+)"/m)?.[1] ?? "host";
  text.split("\n").forEach((line, at) => {
    const head = line.match(/^\s*(\[{1,2})\s*([a-z_.]+)\s*\]{1,2}/);
    if (head) {
      section = head[2];
      group = { title: section, path: section };
      if (head[1] === "[[") group.path = `${section}.${(counts[section] = (counts[section] ?? -1) + 1)}`;
      heads.push({ section, group, at, had: new Set() });
      return;
    }
    const match = line.match(LINE);
    if (!match) return;
    const [, , key, , value] = match;
    group ??= { title: "run", path: "" };
    heads.at(-1)?.had.add(key === "kind" ? value : key);
    if (key === "name") group.title = `${section} ${value.replaceAll('"', "")}`;
    if (!KEYS.has(key)) return;
    const one = valueOfText(value, model, section, key);
    if (key === "policy" || one.number !== undefined) found.push({ at, key, group, section, ...one });
  });
  if (model !== "host") return found;
  if (!heads.some((one) => one.section === "scheduler" || one.section === "cores")) heads.push({ section: "scheduler", group: { title: "scheduler", path: "scheduler" }, had: new Set() });
  // A bias keeps a CPU free for other work; cards have none to do.
  for (const { section, group, at: head, had } of heads.filter((one) => one.section !== "processor" || one.had.has('"cpu"'))) {
    for (const [key, value] of Object.entries(DEFAULTS[section] ?? {})) {
      if (!had.has(key)) found.push({ at: null, head, key, group, section, ...valueOfText(value, model, section, key) });
    }
  }
  const order = [...new Set(found.map((one) => one.group))];
  return found.sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group));
}
function valueOfText(value, model, section, key) {
  const [, number, unit] = value.replaceAll('"', "").match(/^([-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ/]*)$/) ?? [];
  return { value, number, unit, shown: unitOf(model, section, key, unit), quoted: value.startsWith('"') };
}
/** The text with a key that it did not have, below the head of its section. */
function inserted(text, { head, section, key }, value) {
  if (head === undefined) return `${text.trimEnd()}\n\n[${section}]\n${key} = ${value}\n`;
  return text.split("\n").toSpliced(head + 1, 0, `${key} = ${value}`).join("\n");
}
/** Whether a value is a whole number, and stays one; the factor alpha is none. */
const isWhole = (one) => one.key !== "alpha" && /^[0-9_]+$/.test(one.number) && !one.unit;
function replaced(text, at, value) {
  const lines = text.split("\n");
  lines[at] = lines[at].replace(LINE, (_, indent, key, equals, old, rest) => indent + key + equals + value + rest);
  return lines.join("\n");
}
const written = (one, number) => (one.quoted ? `"${number}${one.unit ? ` ${one.unit}` : ""}"` : `${number}`);
const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, "_");
