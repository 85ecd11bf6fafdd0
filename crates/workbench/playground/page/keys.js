// What the keys mean, and which there are, by the line in which the cursor stands: from the JSON Schemas of the documentation.
const KEY = /^(\s*)([a-z_]*)(\s*=.*)?$/;
/** The section of a line, and the keys that it already has. */
function sectionOf(lines, at) {
  const head = (line) => line.match(/^\s*\[{1,2}\s*([a-z_]+)\s*\]{1,2}/)?.[1];
  let begin = at, end = at + 1;
  while (begin >= 0 && head(lines[begin]) === undefined) begin--;
  while (end < lines.length && head(lines[end]) === undefined) end++;
  const had = lines.slice(begin + 1, end).map((line) => line.match(/^\s*([a-z_]+)\s*=/)?.[1]).filter(Boolean);
  return { section: begin < 0 ? "" : head(lines[begin]), had };
}
/** The line of an editor that tells and offers keys; `write` puts a text in the place of the cursor's line. */
function tellKeys(box, area, write) {
  const lines = area.value.split("\n");
  const at = area.value.slice(0, area.selectionStart).split("\n").length - 1;
  const model = area.value.match(/^model\s*=\s*"([a-z-]+)"/m)?.[1] ?? "host";
  const { section, had } = sectionOf(lines, at);
  const all = keys[model]?.[section], [, indent, word, rest] = lines[at]?.match(KEY) ?? [];
  if (!all || word === undefined) return box.replaceChildren();
  const known = all.find((one) => one.key === word);
  if (known && rest !== undefined) return box.replaceChildren(make("b", {}, known.key), `: ${known.help}`);
  const offered = all.filter((one) => !had.includes(one.key) && one.key.startsWith(word));
  const button = (one) => make("button", { type: "button", title: one.help, onclick: () => write(at, `${indent}${one.key} = ${one.example}`) }, one.key);
  box.replaceChildren(section ? `keys of [${section}]: ` : "keys: ", ...offered.map(button));
}
