// What all parts of the page use. The parts are one script: scripts/playground.py puts them together in the order of
// this list: base, runner, text, keys, design, sweep, papers, film, playground.
const { scenarios, keys, policies, figures, version, wasm, glue, worker } = window.FOREBAY;
const $ = (selector, root = document) => root.querySelector(selector);
function make(name, attributes = {}, ...children) {
  const one = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) one.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) one.setAttribute(key, value === true ? "" : value);
  }
  one.append(...children);
  return one;
}
/** Packets that are kept of the beginning of a run, for the film. */
const BEGINNING = 1000;
const status = (words) => ($("#status").textContent = words);

// ---- Bytes and texts.
const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
const bytesOf = (base64) => Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
async function packed(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let string = "";
  for (const byte of bytes) string += String.fromCharCode(byte);
  return btoa(string).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
async function unpacked(text) {
  const bytes = bytesOf(text.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}
function save(name, type, text) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
