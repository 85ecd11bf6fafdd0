// The beginning of a run, packet by packet: where each one is, why it went there, and why it left when it left.
function film(one, title) {
  const { beginning, spans, processors } = one;
  if (!beginning?.length) return [];
  const end = beginning.reduce((last, packet) => Math.max(last, packet.arrived_s), 0);
  const canvas = make("canvas", { role: "img", "aria-label": `${title}: packets in the input, on the bus and at the processors at a moment` });
  const time = make("input", { type: "range", min: 0, max: 1, step: 0.0005, value: 0, "aria-label": "moment of the run" });
  const pace = make("select", { "aria-label": "slowness" }, ...[0.1, 1, 10, 100, 1000].map((us) => make("option", { value: us, selected: us === 10 }, `1 s shows ${us} us`)));
  const words = make("ul", { class: "how", "aria-live": "polite" });
  const buses = [...new Set(spans.filter((span) => span.bus !== null).map((span) => span.bus))];
  const turnstiles = ["take", "complete"].filter((what) => spans.some((span) => span.what === what));
  const policy = one.resolved.match(/^policy = "(.*)"/m)?.[1] ?? "finish-time";
  const ordered = beginning.some((packet) => packet.behind !== null);
  const placed = beginning.filter((packet) => packet.processor !== null);
  const byChoice = [...placed].sort((a, b) => a.chosen_s - b.chosen_s);
  const byLeaving = [...placed].sort((a, b) => a.left_s - b.left_s);
  const name = (packet) => `packet ${beginning.indexOf(packet) + 1} (${packet.bytes} B, SA ${packet.sa}, ticket ${packet.ticket})`;
  /** What its choice compared: of a packet of a job, what was compared for the job's first. */
  const compared = (packet) => packet?.finish_s ?? placed.find((other) => other.finish_s && other.chosen_s === packet?.chosen_s && other.processor === packet.processor)?.finish_s;
  let now = 0, playing = false, last = null;
  const us = (seconds) => `${(1e6 * seconds).toFixed(2)} us`;
  const during = (test) => spans.find((span) => span.from_s <= now && span.until_s > now && test(span));
  /** What a processor does now. A core that has computed and completes next stands at the turnstile. */
  function doing(at) {
    const span = during((span) => span.processor === at && span.bus === null);
    if (span) return { span, words: { compute: "computes", take: "takes", complete: "completes" }[span.what] };
    const own = turnstiles.length ? spans.filter((span) => span.processor === at && span.bus === null) : [];
    const before = own.findLast((span) => span.until_s <= now), next = own.find((span) => span.from_s > now);
    return { words: before?.what === "compute" && next?.what === "complete" ? "at the turnstile" : "idle" };
  }
  function draw() {
    const width = canvas.parentElement.clientWidth, row = 46;
    const height = row * (processors.length + buses.length + turnstiles.length + (ordered ? 1 : 0)) + 20;
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
    context.textBaseline = "middle";
    const write = (words, x, y, { tint = text, room, right = false, bold = false } = {}) => {
      context.font = `${bold ? "700 " : ""}13px ${style.fontFamily}`;
      context.fillStyle = tint;
      context.textAlign = right ? "right" : "left";
      context.fillText(words, x, y, room);
    };
    const input = Math.min(170, width * 0.27), label = Math.min(120, width * 0.24), begin = input + 16;
    const waiting = beginning.filter((packet) => packet.arrived_s <= now && (packet.processor === null ? packet.arrived_s + 1e-6 : packet.chosen_s) > now);
    const inside = processors.map(() => []), held = [];
    let done = 0;
    for (const packet of placed) {
      if (packet.chosen_s > now) continue;
      if (packet.left_s <= now) done++;
      else if (packet.completed_s <= now) held.push(packet);
      else inside[packet.processor].push(packet);
    }
    const dots = (packets, x, y, room, colour, rows) => {
      const across = Math.max(1, Math.floor(room / 9));
      packets.slice(0, across * rows).forEach((packet, at) => {
        const side = 3 + 5 * Math.min(1, Math.sqrt(packet.bytes / 1500));
        context.fillStyle = packet.processor === null ? quiet : colour(packet);
        context.fillRect(x + 9 * (at % across), y + 9 * Math.floor(at / across), side, side);
      });
      if (packets.length > across * rows) write(`+${packets.length - across * rows}`, x + room, y + 9 * rows + 4, { tint: quiet, right: true });
    };
    const own = (packet) => colours[packet.processor];
    write(`input: ${waiting.length}`, 0, 10);
    context.strokeStyle = hair;
    context.strokeRect(0.5, 22.5, input, height - 30);
    dots(waiting, 6, 28, input - 10, own, Math.floor((height - 56) / 9));
    const chosen = byChoice.findLast((packet) => packet.chosen_s <= now), finish = compared(chosen);
    processors.forEach((name, at) => {
      const y = 12 + row * at, { span, words } = doing(at);
      context.fillStyle = wash;
      context.fillRect(begin, y, width - begin, row - 6);
      if (span) {
        context.fillStyle = colours[at];
        context.globalAlpha = 0.28;
        context.fillRect(begin, y, (width - begin) * ((now - span.from_s) / (span.until_s - span.from_s)), row - 6);
        context.globalAlpha = 1;
      }
      write(name, begin + 6, y + 11, { room: label - 10 });
      write(words === "idle" && inside[at].length && !turnstiles.length ? "waits" : words, begin + 6, y + 28, { tint: quiet, room: label - 10 });
      dots(inside[at], begin + label, y + 5, width - begin - label - 8, own, finish ? 2 : 3);
      // The candidates of the choice that was made last.
      const taken = chosen?.processor === at;
      if (finish) write(Number.isFinite(finish[at]) ? `${taken ? "chosen: " : ""}done in ${us(finish[at])}` : "not able", width - 6, y + 31, { tint: taken ? text : quiet, right: true, bold: taken, room: width - begin - label });
    });
    let y = 12 + row * processors.length;
    const strip = (words, span, towards) => {
      context.strokeStyle = hair;
      context.strokeRect(begin + 0.5, y + 0.5, width - begin - 1, row - 22);
      if (span) {
        const share = (now - span.from_s) / (span.until_s - span.from_s);
        context.fillStyle = colours[span.processor];
        context.fillRect(begin + (width - begin - 16) * (towards ? share : 1 - share), y + row - 29, 16, 6);
      }
      write(words, begin + 6, y + 9, { room: width - begin - 12 });
      y += row;
    };
    for (const bus of buses) {
      const span = during((span) => span.bus === bus);
      strip(`bus${buses.length > 1 ? ` ${bus}` : ""}: ${span ? `${span.what === "fetch" ? "to" : "back from"} ${processors[span.processor]}` : "idle"}`, span, span?.what === "fetch");
    }
    for (const what of turnstiles) {
      const span = during((span) => span.what === what);
      strip(`turnstile, ${what === "take" ? "taking" : "completing"}: ${span ? processors[span.processor] : "free"}`, span, true);
    }
    if (ordered) {
      write(`done, wait for an earlier ticket: ${held.length}`, begin, y + 6, { room: width - begin });
      dots(held, begin, y + 16, width - begin - 8, own, 2);
    }
    words.replaceChildren(...tell(chosen, finish, done, waiting.length).map((line) => make("li", {}, line)));
    time.setAttribute("aria-valuetext", us(now));
  }
  function tell(chosen, finish, done, waiting) {
    const lines = [`${us(now)}: ${done} left, ${waiting} in the input.`];
    if (chosen) {
      const went = `Placed last: ${name(chosen)} on ${processors[chosen.processor]}, after ${us(chosen.chosen_s - chosen.arrived_s)} in the input; done ${us(chosen.completed_s - chosen.chosen_s)} later.`;
      const listed = (finish ?? []).map((value, at) => `${processors[at]} ${Number.isFinite(value) ? us(value) : "not able"}`).join(", ");
      const least = Math.min(...(finish ?? []).filter(Number.isFinite)), isLeast = finish?.[chosen.processor] <= least;
      // Of a burst each processor gets a share, and a queue may be full.
      const byTime = isLeast ? "the earliest is chosen" : "chosen for a share of a burst, or because earlier ones are full";
      const rule = ["finish-time", "adaptive-alpha"].includes(policy) ? byTime : `policy ${policy} chooses`;
      lines.push(finish ? `${went} Predicted finish, with alpha and beta: ${listed}; ${rule}.` : turnstiles.length ? `${went} The first core that was idle at the free turnstile took it.` : went);
    }
    const left = byLeaving.findLast((packet) => packet.left_s <= now);
    if (left) {
      const why = left.behind !== null ? `${us(left.left_s - left.completed_s)} after it was complete, when ticket ${left.behind} of its SA was complete too` : "as soon as it was complete";
      lines.push(`Left last: ${name(left)}, ${why}.`);
    }
    return lines;
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
    // A screen reader is not read sixty lines a second.
    words.setAttribute("aria-live", playing ? "off" : "polite");
    if (playing) requestAnimationFrame(frame);
  }
  const to = (moment) => {
    if (Number.isFinite(moment)) now = moment;
    time.value = now / end;
    draw();
  };
  const next = (of) => placed.reduce((least, packet) => (of(packet) > now && of(packet) < least ? of(packet) : least), Infinity);
  const step = make("button", { type: "button", title: "The next packet that is placed", onclick: () => to(next((packet) => packet.chosen_s)) }, "Next placed");
  const leave = make("button", { type: "button", title: "The next packet that leaves", onclick: () => to(next((packet) => packet.left_s)) }, "Next leaves");
  time.addEventListener("input", () => { now = time.value * end; draw(); });
  const box = make("details", { class: "film" }, make("summary", {}, `Watch the first ${beginning.length.toLocaleString("en")} packets`),
    make("div", { class: "row" }, button, step, leave, pace, time), make("div", {}, canvas), words);
  box.addEventListener("toggle", () => (box.open ? draw() : playing && play()));
  const again = () => box.open && box.isConnected && draw();
  new ResizeObserver(again).observe(box);
  // Colours of the other theme.
  new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["style"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  return [box];
}
