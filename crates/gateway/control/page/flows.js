// Links and processors, and what goes between them.

/** Most processors that are drawn; the busiest. */
const DRAWN = 8;

/** What stands in a column: names, rates, and the share of the column's largest. */
function column(list, entries) {
  while (list.children.length > entries.length) list.lastChild.remove();
  const most = Math.max(1e-9, ...entries.map((one) => one.packets));
  entries.forEach((one, at) => {
    const item = list.children[at] ?? list.appendChild(make("li", {}, make("b"), make("span"), make("span"), make("span"), make("i", { "aria-hidden": "true" })));
    item.className = `p${one.slot % 8}${one.out ? " out" : ""}`;
    const [name, rate, flow, more, bar] = item.children;
    put(name, one.out ? `${one.name} (out)` : one.name);
    put(rate, packets(one.packets));
    put(flow, bits(one.bits));
    put(more, one.more);
    bar.style.setProperty("--share", (one.packets / most).toFixed(3));
  });
}

function flows(now) {
  const root = $("#flows");
  const links = merged(now.links);
  const processors = now.processors.map((one, slot) => ({ name: one.name, packets: one.packets, bits: one.bits, out: one.out, slot: slot + 2, more: `load ${percent(one.load)}` }));
  const shown = processors.toSorted((a, b) => b.packets - a.packets).slice(0, DRAWN);
  const side = (one) => (one.is_inside ? "inside" : "outside");
  const of = (which) => links.map((one, slot) => ({ name: one.name, packets: one[which][0], bits: one[which][1], slot, more: which === "sent" ? `${one.queue} waiting` : side(one) }));
  const columns = [of("received"), shown, of("sent")];
  [".received", ".processors", ".sent"].forEach((list, at) => column($(list, root), columns[at]));
  ribbons(root, columns);
}

/** Queues of a link on several engines as one. */
function merged(links) {
  const all = new Map();
  for (const link of links) {
    const name = link.name.replace(/@\d+$/, ""), known = all.get(name);
    if (!known) all.set(name, { ...link, name, received: [...link.received], sent: [...link.sent] });
    else {
      for (const key of ["received", "sent"]) known[key] = known[key].map((value, at) => value + link[key][at]);
      known.queue += link.queue;
    }
  }
  return [...all.values()];
}

/** From each link to each processor, as wide as the link's packets by the processor's share. */
function ribbons(root, [received, processors, sent]) {
  const svg = $(".ribbons", root), frame = root.getBoundingClientRect();
  svg.replaceChildren();
  if (getComputedStyle(svg).display === "none") return;
  const boxes = (list) => [...$(list, root).children].map((one) => one.getBoundingClientRect());
  const [from, middle, to] = [".received", ".processors", ".sent"].map(boxes);
  const all = processors.reduce((sum, one) => sum + one.packets, 0);
  const most = Math.max(1e-9, ...received.concat(sent).map((one) => one.packets));
  const draw = (left, right, value, slot) => {
    if (!(value > 0)) return;
    const [x1, y1, x2, y2] = [left.right - frame.left, (left.top + left.bottom) / 2 - frame.top, right.left - frame.left, (right.top + right.bottom) / 2 - frame.top];
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path"), bend = (x1 + x2) / 2;
    path.setAttribute("d", `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`);
    path.setAttribute("class", `p${slot % 8}`);
    path.setAttribute("stroke-width", Math.max(1, (34 * value) / most).toFixed(1));
    svg.append(path);
  };
  received.forEach((link, at) => processors.forEach((one, place) => draw(from[at], middle[place], (link.packets * one.packets) / (all || 1), link.slot)));
  sent.forEach((link, at) => processors.forEach((one, place) => draw(middle[place], to[at], (link.packets * one.packets) / (all || 1), link.slot)));
}
