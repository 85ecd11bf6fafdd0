// The worker of a run: it simulates one text after the other. Who wants to stop it ends it.
self.forebayProgress = (share) => postMessage({ progress: share });
self.onmessage = ({ data }) => {
  if (data.wasm) {
    self.memory = wasm_bindgen.initSync({ module: data.wasm }).memory;
    return;
  }
  const begin = performance.now();
  try {
    if (data.plots) {
      postMessage({ plots: data.plots.map((one) => wasm_bindgen.plot(JSON.stringify(one))) });
      return;
    }
    const answer = wasm_bindgen.run(data.text, JSON.stringify(data.request));
    postMessage({ answer, took_ms: performance.now() - begin, memory: self.memory.buffer.byteLength });
  } catch (error) {
    // A panic, or no more memory: this module cannot go on.
    postMessage({ broken: String(error) });
  }
};
