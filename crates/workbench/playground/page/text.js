// Values in the text that a control may change, by the line in which they stand.
const KEYS = new Set(["seed", "packets", "duration", "rate", "offered", "mean", "value", "count", "init", "block", "throughput", "alpha", "beta",
  "queue", "window", "timeout", "burst", "input", "clock", "width", "bandwidth", "time", "buffer", "run_length", "busy", "runs", "sas", "policy"]);
/** What values count that have no unit in the text. */
const COUNTED = { packets: "packets", window: "packets", input: "packets", buffer: "packets", burst: "packets", queue: "jobs", count: "copies", sas: "SAs",
  runs: "runs", run_length: "packets", alpha: "times", busy: "of the time" };
/** The unit of a value as a control shows it: that of the text, the key's base unit, or what it counts. */
const unitOf = (model, section, key, unit) => unit || keys[model]?.[section]?.find((one) => one.key === key)?.unit || COUNTED[key];
const LINE = /^(\s*)([a-z_]+)(\s*=\s*)("[^"]*"|[-+0-9._eE]+)(\s*(?:#.*)?)$/;
function values(text) {
  const found = [];
  let section = "", group = null;
  const counts = {}, model = text.match(/^model\s*=\s*"([a-z-]+)"/m)?.[1] ?? "host";
  text.split("\n").forEach((line, at) => {
    const head = line.match(/^\s*(\[{1,2})\s*([a-z_.]+)\s*\]{1,2}/);
    if (head) {
      section = head[2];
      group = { title: section, path: section };
      if (head[1] === "[[") group.path = `${section}.${(counts[section] = (counts[section] ?? -1) + 1)}`;
      return;
    }
    const match = line.match(LINE);
    if (!match) return;
    const [, , key, , value] = match;
    group ??= { title: "run", path: "" };
    if (key === "name") group.title = `${section} ${value.replaceAll('"', "")}`;
    if (!KEYS.has(key)) return;
    const [, number, unit] = value.replaceAll('"', "").match(/^([-+]?[0-9][0-9_.]*(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ/]*)$/) ?? [];
    if (key === "policy" || number !== undefined) found.push({ at, key, group, section, value, number, unit, shown: unitOf(model, section, key, unit), quoted: value.startsWith('"') });
  });
  // The policy can be chosen where the text leaves it to its default too.
  if (/^model = "host"/m.test(text) && !found.some((one) => one.key === "policy")) {
    found.push({ at: null, key: "policy", group: { title: "scheduler", path: "scheduler" }, section: "scheduler", value: `"${policies[0]}"` });
  }
  return found;
}
/** The text with a policy, which it did not have. */
function withPolicy(text, value) {
  const line = `policy = ${value}`;
  if (/^\[scheduler\]/m.test(text)) return text.replace(/^\[scheduler\].*$/m, (head) => `${head}\n${line}`);
  return `${text.trimEnd()}\n\n[scheduler]\n${line}\n`;
}
function replaced(text, at, value) {
  const lines = text.split("\n");
  lines[at] = lines[at].replace(LINE, (_, indent, key, equals, old, rest) => indent + key + equals + value + rest);
  return lines.join("\n");
}
const written = (one, number) => (one.quoted ? `"${number}${one.unit ? ` ${one.unit}` : ""}"` : `${number}`);
const grouped = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, "_");
