// Workers, each of which does one thing after the other and can be stopped.
const module = await through(bytesOf(wasm), new DecompressionStream("gzip"));
const source = URL.createObjectURL(new Blob([glue, "\n", worker], { type: "text/javascript" }));
const EARLY = "a run that needs more memory than the browser gives goes by `forebay simulate`";

/** A worker; what it is asked waits until it is done with what came before. */
class Runner {
  constructor() {
    this.before = Promise.resolve();
    this.start();
  }
  start() {
    const worker = new Worker(source);
    this.worker = worker;
    worker.onmessage = ({ data }) => {
      // One that has been ended may have said something before.
      if (worker !== this.worker) return;
      if ("progress" in data) return this.progress?.(data.progress);
      this.settle(data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      if (worker === this.worker) this.settle({ broken: event.message || "the worker has ended" });
    };
    const copy = module.slice().buffer;
    worker.postMessage({ wasm: copy }, [copy]);
  }
  /** Gives what came to who asked; a module that has ended early is not asked again. */
  settle(data) {
    const done = this.done;
    this.done = null;
    if (!data || data.broken) {
      this.worker.terminate();
      this.start();
    }
    done?.(data);
  }
  /** What the worker answers, or `null` if it was stopped. */
  ask(message, progress) {
    const answer = this.before.then(() => new Promise((done) => {
      Object.assign(this, { done, progress });
      this.worker.postMessage(message);
    }));
    this.before = answer;
    return answer;
  }
  /** The answer to a text (answer.rs), or `null` if the run was stopped. */
  async run(text, request, progress) {
    const data = await this.ask({ text, request }, progress);
    if (!data) return null;
    if (data.broken) return { fault: { message: `The run has ended early: ${data.broken}`, help: EARLY, findings: [], left_out: 0 } };
    const answer = JSON.parse(data.answer);
    return { ...(answer === "right" ? { right: true } : answer), took_ms: data.took_ms, memory: data.memory };
  }
  /** Figures of lines (plot.rs) as HTML. */
  async plots(list) {
    return (await this.ask({ plots: list }))?.plots ?? [];
  }
  stop() {
    if (this.done) this.settle(null);
  }
}
