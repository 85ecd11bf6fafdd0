"use strict";
// Numbers with their units, and tables whose cells change only where a value has.

const $ = (selector, root = document) => root.querySelector(selector);
function make(name, attributes = {}, ...children) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== false) one.setAttribute(key, value);
  one.append(...children);
  return one;
}
function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// ---- Units. The space between number and unit does not break.
const NONE = "–";
function three(value) {
  const size = Math.abs(value);
  // What is whole stays so: counts, and a rate of 0.
  return Number.isInteger(value) && size < 1000 ? String(value) : size >= 99.95 ? String(Math.round(value)) : size >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}
function si(value, unit) {
  if (!Number.isFinite(value)) return NONE;
  const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [by, prefix] = steps.find(([by]) => Math.abs(value) >= 0.9995 * by) ?? [1, ""];
  // Packets come whole: a prefix stands by itself, "12.3 k packets/s".
  const word = prefix && /^[A-Z]?bit|^B/.test(unit) ? prefix + unit : [prefix, unit].filter(Boolean).join("\u00a0");
  return `${three(value / by)}\u00a0${word}`.trimEnd();
}
const packets = (value) => si(value, "packets/s");
const bits = (value) => si(value, "bit/s");
/** Without the unit, which stands in the head of the column. */
const bare = (value) => si(value, "");
const percent = (share) => `${three(100 * share)}\u00a0%`;
function seconds(value) {
  if (value === null || !Number.isFinite(value)) return NONE;
  if (value === 0) return "0\u00a0s";
  const steps = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]];
  const [by, unit] = steps.find(([by]) => Math.abs(value) >= 0.9995 * by) ?? [1e-9, "ns"];
  return `${three(value / by)}\u00a0${unit}`;
}
function span(value) {
  const parts = [[86400, "d"], [3600, "h"], [60, "min"]];
  const at = parts.findIndex(([by]) => value >= by);
  if (at < 0) return `${Math.max(0, Math.floor(value))}\u00a0s`;
  const [by, unit] = parts[at], [next, small] = parts[at + 1] ?? [1, "s"];
  return `${Math.floor(value / by)}\u00a0${unit} ${Math.floor((value % by) / next)}\u00a0${small}`;
}
const clock = (at) => new Date(1000 * at).toLocaleTimeString([], { hour12: false });

/** Names in backticks as code. */
function coded(node, text) {
  if (node.dataset.text === text) return;
  node.dataset.text = text;
  node.replaceChildren(...text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part)));
}

/** Fills a table: columns are [head, class], rows are { bad, cells }; a cell is text, or { code }. */
/** A word joiner keeps a unit such as packets/s in one line. */
const whole = (head) => head.replaceAll("/", "/\u2060");
function fill(table, caption, columns, rows, none) {
  if (!table.tHead) {
    table.className = "cards";
    table.append(make("caption", {}, caption), make("thead", {}, make("tr", {}, ...columns.map(([head, cls]) => make("th", { scope: "col", class: cls }, whole(head))))), make("tbody"));
  }
  const body = table.tBodies[0];
  if (rows.length === 0) {
    body.replaceChildren(make("tr", { class: "none" }, make("td", { colspan: columns.length }, none)));
    return;
  }
  if (body.firstChild?.className === "none") body.replaceChildren();
  while (body.rows.length > rows.length) body.lastChild.remove();
  rows.forEach(({ bad, cells }, at) => {
    const row = body.rows[at] ?? body.appendChild(make("tr", {}, ...columns.map(([head, cls]) => make("td", { class: cls, "data-head": head }))));
    row.className = bad ? "bad" : "";
    cells.forEach((cell, column) => write(row.cells[column], cell));
  });
}
function write(node, cell) {
  if (cell?.code !== undefined) return coded(node, cell.code);
  put(node, String(cell ?? NONE));
}
