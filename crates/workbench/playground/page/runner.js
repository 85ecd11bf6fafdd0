// Workers, each of which runs one text at a time and can be stopped.
const module = await through(bytesOf(wasm), new DecompressionStream("gzip"));
const source = URL.createObjectURL(new Blob([glue, "\n", worker], { type: "text/javascript" }));
/** A worker that runs one text at a time. */
class Runner {
  constructor() {
    this.start();
  }
  start() {
    this.worker = new Worker(source);
    this.worker.onmessage = ({ data }) => {
      if ("progress" in data) return this.progress?.(data.progress);
      const done = this.done;
      this.done = null;
      if (data.broken) this.restart();
      done?.(data);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      const done = this.done;
      this.done = null;
      this.restart();
      done?.({ broken: event.message || "the worker has ended" });
    };
    const copy = module.slice().buffer;
    this.worker.postMessage({ wasm: copy }, [copy]);
  }
  restart() {
    this.worker.terminate();
    this.start();
  }
  /** The answer, or `null` if the run was stopped. */
  run(text, request, progress) {
    this.progress = progress;
    return new Promise((done) => {
      this.done = done;
      this.worker.postMessage({ text, request });
    }).then((data) => {
      if (!data) return null;
      if (data.broken) return { fault: { message: `The run has ended early: ${data.broken}`, help: "a run that needs more memory than the browser gives goes by `forebay simulate`", findings: [], left_out: 0 } };
      return { ...JSON.parse(data.answer === '"right"' ? '{"right":true}' : data.answer), took_ms: data.took_ms };
    });
  }
  plots(list) {
    return new Promise((done) => {
      this.done = done;
      this.worker.postMessage({ plots: list });
    }).then((data) => data?.plots ?? []);
  }
  stop() {
    const done = this.done;
    this.done = null;
    if (!done) return;
    this.restart();
    done(null);
  }
}
