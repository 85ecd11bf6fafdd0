// The playground's module in Node.js: requests as lines of JSON on standard input, answers on standard output.
//
//   node tests/browser/playground.mjs target/playground/module
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const folder = process.argv[2];
globalThis.forebayProgress = () => {};
const glue = readFileSync(`${folder}/forebay_playground.js`, "utf8");
const bindgen = new Function(`${glue}\nreturn wasm_bindgen;`)();
bindgen.initSync({ module: readFileSync(`${folder}/forebay_playground_bg.wasm`) });
for await (const line of createInterface({ input: process.stdin })) {
  const { text, request } = JSON.parse(line);
  const begin = performance.now();
  const answer = JSON.parse(bindgen.run(text, JSON.stringify(request)));
  console.log(JSON.stringify({ ...(typeof answer === "string" ? { right: true } : answer), took_ms: performance.now() - begin }));
}
