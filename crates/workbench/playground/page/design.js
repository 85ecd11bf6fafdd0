// A design: its editor, its findings and its controls.
class Design {
  constructor(letter) {
    this.letter = letter;
    this.root = $(`[data-design="${letter}"]`);
    this.root.append($("#design").content.cloneNode(true));
    const upper = letter.toUpperCase();
    Object.assign($("h2", this.root), { id: `title-${letter}`, textContent: `Design ${upper}` });
    this.area = $(".text", this.root);
    this.gutter = $(".gutter", this.root);
    this.pick = $(".pick", this.root);
    this.area.setAttribute("aria-label", `Scenario of design ${upper}, TOML`);
    const groups = Map.groupBy ? Map.groupBy(scenarios, (one) => one.folder) : scenarios.reduce((map, one) => map.set(one.folder, [...(map.get(one.folder) ?? []), one]), new Map());
    for (const [folder, list] of groups) {
      this.pick.append(make("optgroup", { label: folder }, ...list.map((one) => make("option", { value: one.name }, one.file))));
    }
    this.pick.append(make("option", { value: "", hidden: true }, "changed"));
    this.pick.addEventListener("change", () => this.set(scenarios.find((one) => one.name === this.pick.value).text, true));
    this.area.addEventListener("input", () => this.changed());
    const tell = () => tellKeys($(".keys", this.root), this.area, (at, line) => this.line(at, line));
    for (const event of ["input", "keyup", "click", "focus"]) this.area.addEventListener(event, tell);
    this.area.addEventListener("scroll", () => (this.gutter.scrollTop = this.area.scrollTop));
    $(".toml", this.root).title = `Download design ${upper} as a file for forebay simulate`;
    $(".toml", this.root).addEventListener("click", () => save(`${this.file}.toml`, "application/toml", this.text));
  }
  get text() {
    return this.area.value;
  }
  get file() {
    return (this.pick.value || `design-${this.letter}`).replaceAll("/", "-");
  }
  get name() {
    return `${this.file}.toml`;
  }
  set(text) {
    this.area.value = text;
    this.area.scrollTop = 0;
    this.changed();
  }
  /** Puts a line in the place of another one, and the cursor at its end. */
  line(at, line) {
    const lines = this.text.split("\n");
    lines[at] = line;
    this.area.value = lines.join("\n");
    const end = lines.slice(0, at + 1).join("\n").length;
    this.area.focus();
    this.area.setSelectionRange(end, end);
    this.changed();
    this.area.dispatchEvent(new Event("keyup"));
  }
  /** Says what the text has become; a control that has changed it keeps its place. */
  changed(keep = false) {
    this.pick.value = scenarios.find((one) => one.text === this.text)?.name ?? "";
    this.mark([]);
    if (!keep) this.controls();
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.check(), 300);
  }
  async check() {
    const text = this.text;
    const answer = await checker.run(text, { name: this.name, check: true });
    if (answer && text === this.text) this.say(answer.fault);
  }
  /** Writes the lines' numbers, those with findings marked. */
  mark(wrong) {
    const lines = this.text.split("\n").length, marked = new Set(wrong);
    const out = [];
    for (let line = 1; line <= lines; line++) {
      if (marked.has(line)) out.push(make("span", { class: "wrong" }, `${line}`), "\n");
      else out.push(`${line}\n`);
    }
    this.gutter.replaceChildren(...out);
    this.gutter.scrollTop = this.area.scrollTop;
  }
  say(fault) {
    const list = $(".faults", this.root);
    if (!fault) {
      this.mark([]);
      list.replaceChildren();
      this.area.removeAttribute("aria-invalid");
      return;
    }
    this.area.setAttribute("aria-invalid", "true");
    this.mark(fault.findings.map((one) => one.line));
    const item = ({ line, column, message, help }) => {
      const place = line ? [make("a", { href: "#", onclick: (event) => { event.preventDefault(); this.go(line, column); } }, `line ${line}, column ${column}`), ": "] : [];
      return make("li", {}, ...place, message, ...(help ? [make("span", { class: "help" }, help)] : []));
    };
    list.replaceChildren(...(fault.findings.length ? fault.findings : [fault]).map(item));
    if (fault.left_out) list.append(make("li", {}, `and ${fault.left_out} more`));
  }
  go(line, column) {
    const before = this.text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const at = before + [...this.text.slice(before)].slice(0, column - 1).join("").length;
    const end = this.text.indexOf("\n", at);
    this.area.focus();
    this.area.setSelectionRange(at, end < 0 ? this.text.length : end);
    this.area.scrollTop = Math.max(0, (line - 6) * 19);
  }
  controls() {
    const box = $(".controls", this.root), parts = [make("legend", {}, "parameters")];
    let group = null;
    values(this.text).forEach((one, number) => {
      if (one.group !== group) parts.push(make("p", { class: "group" }, one.group.title));
      group = one.group;
      parts.push(this.control(one, `${this.letter}-${number}`));
    });
    box.replaceChildren(...parts);
  }
  control(one, id) {
    const write = (value) => {
      this.area.value = one.at === null ? inserted(this.text, one, value) : replaced(this.text, one.at, value);
      this.changed(one.at !== null);
    };
    const label = make("label", { for: id }, one.key.replaceAll("_", " "));
    if (one.key === "policy") {
      const now = one.value.replaceAll('"', "");
      const words = policies.includes(now) ? policies : [now, ...policies];
      const select = make("select", { id, onchange: () => write(`"${select.value}"`) }, ...words.map((word) => make("option", { selected: word === now }, word)));
      return make("div", { class: "control" }, label, select);
    }
    const value = Number(one.number.replaceAll("_", "")), whole = isWhole(one);
    const field = make("input", { id, type: "text", inputmode: "decimal", value: one.number.replaceAll("_", "") });
    const shown = (number) => (whole ? String(Math.max(1, Math.round(number))) : String(Number(number.toPrecision(3))));
    // A tenth to ten times what the scenario says, by equal factors.
    const range = make("input", { type: "range", min: -1, max: 1, step: 0.01, value: 0, "aria-label": `${one.group.title} ${one.key}${one.shown ? `, ${one.shown}` : ""}` });
    range.disabled = !(value > 0);
    const least = one.key === "alpha" ? 1 : 0;
    range.addEventListener("input", () => {
      const now = shown(Math.max(least, one.key === "busy" ? Math.min(1, value * 10 ** range.value) : value * 10 ** range.value));
      range.setAttribute("aria-valuetext", `${now} ${one.shown ?? ""}`.trim());
      field.value = now;
      // A key that is not in the text yet is written once, at the end: its control is another one then.
      if (one.at !== null) put();
    });
    const put = () => write(written(one, one.number.includes("_") ? grouped(field.value) : field.value));
    range.addEventListener("change", () => one.at === null && put());
    field.addEventListener("change", () => write(written(one, field.value.trim())));
    return make("div", { class: "control" }, label, range, make("span", { class: "worth" }, field, ...(one.shown ? [make("span", { class: "unit" }, one.shown)] : [])));
  }
}
