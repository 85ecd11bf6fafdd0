// The beginning of a run, packet by packet.
function film(one, title) {
  const { beginning, spans, processors } = one;
  if (!beginning?.length) return [];
  const end = beginning.reduce((last, packet) => Math.max(last, packet.arrived_s), 0);
  const canvas = make("canvas", { role: "img", "aria-label": `${title}: packets in the input, on the bus and at the processors at a moment` });
  const time = make("input", { type: "range", min: 0, max: 1, step: 0.0005, value: 0, "aria-label": "moment of the run" });
  const pace = make("select", { "aria-label": "slowness" }, ...[0.1, 1, 10, 100, 1000].map((us) => make("option", { value: us, selected: us === 10 }, `1 s shows ${us} us`)));
  const words = make("p", { class: "how", role: "status" });
  const buses = [...new Set(spans.filter((span) => span.bus !== null).map((span) => span.bus))];
  let now = 0, playing = false, last = null;
  const us = (seconds) => `${(1e6 * seconds).toFixed(2)} us`;
  function draw() {
    const width = canvas.parentElement.clientWidth, row = 46, height = row * (processors.length + buses.length) + 20;
    const scale = devicePixelRatio || 1;
    Object.assign(canvas, { width: width * scale, height: height * scale });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    const style = getComputedStyle(document.body), context = canvas.getContext("2d");
    // `light-dark()` is resolved where it is used.
    const probe = make("span");
    canvas.parentElement.append(probe);
    const colour = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
    const colours = processors.map((_, at) => colour(`c${at % 8}`)), [text, quiet, hair, wash] = ["text", "quiet", "hair", "wash"].map(colour);
    probe.remove();
    context.scale(scale, scale);
    context.font = `13px ${style.fontFamily}`;
    context.textBaseline = "middle";
    const input = Math.min(170, width * 0.27), label = Math.min(120, width * 0.24), begin = input + 16;
    const waiting = beginning.filter((packet) => packet.arrived_s <= now && (packet.processor === null ? packet.arrived_s + 1e-6 : packet.chosen_s) > now);
    const inside = processors.map(() => []);
    let done = 0;
    for (const packet of beginning) {
      if (packet.processor === null || packet.chosen_s > now) continue;
      if (packet.completed_s <= now) done++;
      else inside[packet.processor].push(packet);
    }
    const dots = (packets, x, y, room, colour, rows) => {
      const across = Math.max(1, Math.floor(room / 9));
      packets.slice(0, across * rows).forEach((packet, at) => {
        const side = 3 + 5 * Math.min(1, Math.sqrt(packet.bytes / 1500));
        context.fillStyle = packet.processor === null ? quiet : colour(packet);
        context.fillRect(x + 9 * (at % across), y + 9 * Math.floor(at / across), side, side);
      });
      if (packets.length > across * rows) {
        context.fillStyle = quiet;
        context.fillText(`+${packets.length - across * rows}`, x + room - 26, y + 9 * rows + 4);
      }
    };
    context.fillStyle = text;
    context.fillText(`input: ${waiting.length}`, 0, 10);
    context.strokeStyle = hair;
    context.strokeRect(0.5, 22.5, input, height - 30);
    dots(waiting, 6, 28, input - 10, (packet) => colours[packet.processor], Math.floor((height - 56) / 9));
    processors.forEach((name, at) => {
      const y = 12 + row * at;
      const compute = spans.find((span) => span.what === "compute" && span.processor === at && span.from_s <= now && span.until_s > now);
      context.fillStyle = wash;
      context.fillRect(begin, y, width - begin, row - 10);
      if (compute) {
        context.fillStyle = colours[at];
        context.globalAlpha = 0.28;
        context.fillRect(begin, y, (width - begin) * ((now - compute.from_s) / (compute.until_s - compute.from_s)), row - 10);
        context.globalAlpha = 1;
      }
      context.fillStyle = text;
      context.fillText(name, begin + 6, y + 11, label - 10);
      context.fillStyle = quiet;
      context.fillText(compute ? "computes" : inside[at].length ? "waits" : "idle", begin + 6, y + 26, label - 10);
      dots(inside[at], begin + label, y + 6, width - begin - label - 8, () => colours[at], 2);
    });
    buses.forEach((bus, number) => {
      const y = 12 + row * (processors.length + number);
      const carries = spans.find((span) => span.bus === bus && span.from_s <= now && span.until_s > now);
      context.strokeStyle = hair;
      context.strokeRect(begin + 0.5, y + 0.5, width - begin - 1, row - 22);
      if (carries) {
        const share = (now - carries.from_s) / (carries.until_s - carries.from_s);
        context.fillStyle = colours[carries.processor];
        context.fillRect(begin + (width - begin - 16) * (carries.what === "fetch" ? share : 1 - share), y + row - 29, 16, 6);
      }
      context.fillStyle = text;
      const what = carries ? `${carries.what === "fetch" ? "to" : "back from"} ${processors[carries.processor]}` : "idle";
      context.fillText(`bus${buses.length > 1 ? ` ${bus}` : ""}: ${what}`, begin + 6, y + 9, width - begin - 12);
    });
    const chosen = beginning.findLast((packet) => packet.processor !== null && packet.chosen_s <= now);
    words.textContent = `${us(now)}: ${done} done, ${waiting.length} in the input` + (chosen ? `; last placed: ${chosen.bytes} B on ${processors[chosen.processor]}, after ${us(chosen.chosen_s - chosen.arrived_s)} in the input, done ${us(chosen.completed_s - chosen.chosen_s)} later.` : ".");
    time.setAttribute("aria-valuetext", us(now));
  }
  function frame(stamp) {
    if (!playing) return;
    if (last !== null) now += ((stamp - last) / 1000) * pace.value * 1e-6;
    last = stamp;
    if (now >= end) { now = end; play(); }
    time.value = now / end;
    draw();
    if (playing) requestAnimationFrame(frame);
  }
  const button = make("button", { type: "button", onclick: () => play() }, "Play");
  function play() {
    if (!playing && now >= end) now = 0;
    playing = !playing;
    last = null;
    button.textContent = playing ? "Pause" : "Play";
    if (playing) requestAnimationFrame(frame);
  }
  const step = make("button", { type: "button", title: "The next packet that is placed", onclick: () => {
    const next = beginning.reduce((least, packet) => (packet.processor !== null && packet.chosen_s > now && packet.chosen_s < least ? packet.chosen_s : least), Infinity);
    if (Number.isFinite(next)) now = next;
    time.value = now / end;
    draw();
  } }, "Next");
  time.addEventListener("input", () => { now = time.value * end; draw(); });
  const box = make("details", { class: "film" }, make("summary", {}, `Watch the first ${beginning.length.toLocaleString("en")} packets`),
    make("div", { class: "row" }, button, step, pace, time), make("div", {}, canvas), words);
  box.addEventListener("toggle", () => (box.open ? draw() : playing && play()));
  const again = () => box.open && box.isConnected && draw();
  new ResizeObserver(again).observe(box);
  // Colours of the other theme.
  new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  return [box];
}
