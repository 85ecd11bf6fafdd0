"use strict";
// Plots that answer: values under the pointer and the arrow keys, zoom, series that come and go, the data to
// take away. A figure holds its values as JSON; here they are drawn in the size that the window has. Without
// this script the drawing made beforehand stays.
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const TEXT = 13, LINE = 16, RIGHT = 12, TALL = 236, MARKED = 40, PLACES = 12;
  const DASHES = ["", "7 3", "2 3", "9 3 2 3", "5 2", "1 3", "12 4", "4 4 1 4"];

  // ---- Numbers as units.rs writes them.
  const thousands = (text) => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  function digits(value) {
    const size = Math.abs(value);
    if (!Number.isFinite(value)) return "–";
    if (size === 0) return "0";
    if (size < 1e-6 || size >= 999999999.5) {
      const [number, power] = value.toExponential(2).replace("e+", "e").split("e");
      return `${number}×10${[...power].map((one) => (one === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[one])).join("")}`;
    }
    if (size >= 999.5) return (value < 0 ? "-" : "") + thousands(String(Math.round(size)));
    if (size < 0.09995) return value.toFixed(2 + Math.ceil(-Math.log10(size)));
    return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
  }
  /** Five digits, for who asks for a single value. */
  function exact(value) {
    const size = Math.abs(value);
    if (!Number.isFinite(value) || size < 0.1 || size >= 1e9) return digits(value);
    const [whole, part] = String(Number(value.toPrecision(5))).split(".");
    return thousands(whole) + (part ? `.${part}` : "");
  }
  const rounded = (text) => (/\.\d*$/.test(text) ? text.replace(/\.?0+$/, "") : text);
  const number = (text) => Number(text.replaceAll(",", ""));
  /** As units.rs: zeros behind the point stay unless the number ends there. */
  function shown(value) {
    const text = digits(value), short = rounded(text);
    return Math.abs(number(short) - value) <= 1e-12 * Math.abs(value) ? short : text;
  }
  /** The values of an axis, with as many digits as tell them apart. */
  function ticksOf(values) {
    const by = Math.min(...values.slice(1).map((one, at) => Math.abs(one - values[at])).filter((one) => one > 0));
    const right = (text, at) => text.includes("×") || Math.abs(number(text) - values[at]) <= 0.02 * by;
    const said = values.map((one) => rounded(digits(one)));
    if (by === Infinity || said.every(right)) return said;
    for (let decimals = 0; decimals < 15; decimals += 1) {
      const written = values.map((one) => one.toFixed(decimals));
      if (written.every(right)) return written;
    }
    return said;
  }
  /** How many figures a number has, zeros at its ends not counted; of a power of ten none. */
  function figures(value) {
    const [text] = Math.abs(value).toExponential().split("e");
    return text === "1" ? 0 : text.replace(".", "").length;
  }

  // ---- Text, as draw.rs measures and breaks it: on the wide side.
  const wide = (text) => text.length * TEXT * 0.58, valued = (text) => text.length * 12 * 0.56;
  function wrap(text, room) {
    const lines = [];
    for (const word of text.match(/[^ \-/,]*[ \-/,]|[^ \-/,]+$/g) ?? []) {
      if (lines.length && wide((lines.at(-1) + word).trimEnd()) <= room) lines[lines.length - 1] += word;
      else lines.push(word);
    }
    return lines.map((line) => line.trimEnd()).filter((line) => line);
  }

  // ---- Axes.
  const STEPS = [1, 2, 5, 10];
  function step(span, parts) {
    const decade = 10 ** Math.floor(Math.log10(span / parts));
    return STEPS.find((one) => one * decade * parts >= span * (1 - 1e-9)) * decade || span;
  }
  /** The next of 1, 2, 5, 10, ... below (-1) or above (1) a value. */
  function beside(value, way) {
    const decade = 10 ** Math.floor(Math.log10(value));
    const list = STEPS.map((one) => one * decade);
    return way > 0 ? list.find((one) => one >= value * (1 - 1e-9)) : list.findLast((one) => one <= value * (1 + 1e-9)) ?? decade;
  }
  /** Values from `low` to `high` along `from` to `to` in pixels. */
  function axis(low, high, from, to, log, parts) {
    const turn = log ? Math.log : (value) => value;
    const [a, b] = [turn(low), turn(high)];
    const at = (value) => from + ((turn(log ? Math.max(value, 1e-300) : value) - a) / (b - a || 1)) * (to - from);
    const value = (pixel) => {
      const part = a + ((pixel - from) / (to - from)) * (b - a);
      return log ? Math.exp(part) : part;
    };
    const ticks = [];
    if (log && high / low > 9.99) {
      const decades = Math.log10(high / low);
      const stride = Math.ceil(decades / parts);
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high) + 1e-9; power += 1) {
        for (const factor of decades < 3.1 ? [1, 2, 5] : [1]) {
          const one = factor * 10 ** power;
          if (one >= low * 0.999 && one <= high * 1.001 && power % stride === 0) ticks.push(one);
        }
      }
    } else {
      const by = step(high - low || 1, parts);
      for (let n = Math.ceil(low / by - 1e-9); n * by <= high + by * 1e-9; n += 1) ticks.push(n * by);
    }
    return { at, value, ticks, low, high, log };
  }

  // ---- Drawing.
  function make(name, attributes = {}, parent) {
    const one = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
    return parent ? parent.appendChild(one) : one;
  }
  function label(parent, x, y, cls, content) {
    make("text", { x, y, class: cls }, parent).textContent = content;
  }
  const SHAPES = [
    null,
    [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
    [[0, -1.15], [1.15, 1.15], [-1.15, 1.15]],
    [[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]],
    [[0, 1.15], [1.15, -1.15], [-1.15, -1.15]],
    [[-1.1, -1.1], [1.1, -1.1], [0, 0], [1.1, 1.1], [-1.1, 1.1], [0, 0]],
    [[-0.43, -1.2], [0.43, -1.2], [0.43, -0.43], [1.2, -0.43], [1.2, 0.43], [0.43, 0.43], [0.43, 1.2], [-0.43, 1.2], [-0.43, 0.43], [-1.2, 0.43], [-1.2, -0.43], [-0.43, -0.43]],
    [[-1.1, -1.1], [0, 0], [1.1, -1.1], [1.1, 1.1], [0, 0], [-1.1, 1.1]],
  ];
  /** The hollow mark of a printed value. */
  const PRINTED = [
    [[0, -5.5], [5.5, 0], [0, 5.5], [-5.5, 0]],
    [[-4.5, -4.5], [4.5, -4.5], [4.5, 4.5], [-4.5, 4.5]],
    [[0, -5], [5, 4.5], [-5, 4.5]],
    [[0, 5], [5, -4.5], [-5, -4.5]],
  ];
  function printed(parent, series, slot, x, y) {
    const { of = [] } = series[slot], alone = of.length !== 1;
    const shape = alone ? series.slice(0, slot).filter((one) => one.printed && one.of?.length !== 1).length : 0;
    const points = PRINTED[shape % PRINTED.length].map(([dx, dy]) => `${x + dx},${y + dy}`).join(" ");
    return make("polygon", { points, class: alone ? "printed alone" : `printed p${of[0] % 8}` }, parent);
  }
  function mark(parent, slot, x, y) {
    const shape = SHAPES[slot % 8], cls = `fill point p${slot % 8}`;
    if (!shape) return make("circle", { cx: x, cy: y, r: 4, class: cls }, parent);
    const points = shape.map(([dx, dy]) => `${x + 4 * dx},${y + 4 * dy}`).join(" ");
    return make("polygon", { points, class: cls }, parent);
  }

  // ---- Taking away.
  function save(name, type, text) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(text instanceof Blob ? text : new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  const field = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  function csv(data) {
    const rows = [["series", data.x || "name", data.y, "half_width"]];
    for (const one of data.series) one.xs.forEach((x, at) => rows.push([one.name, x, one.ys[at] ?? "", one.spread?.[at] ?? ""]));
    return rows.map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
  }
  /** A drawing by itself: what the style sheet says of it is written into it. */
  function alone(svg) {
    const copy = svg.cloneNode(true);
    const [from, to] = [svg.querySelectorAll("*"), copy.querySelectorAll("*")];
    from.forEach((one, at) => {
      const style = getComputedStyle(one);
      for (const key of ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-size", "font-family", "text-anchor", "display"]) {
        to[at].style.setProperty(key, style.getPropertyValue(key));
      }
    });
    copy.querySelector(".cursor")?.remove();
    const { width, height } = svg.viewBox.baseVal;
    copy.setAttribute("xmlns", NS);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.style.background = getComputedStyle(document.body).backgroundColor;
    return new XMLSerializer().serializeToString(copy);
  }
  function picture(svg, name) {
    const image = new Image(), { width, height } = svg.viewBox.baseVal;
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * width, 2 * height];
      const context = canvas.getContext("2d");
      context.fillStyle = getComputedStyle(document.body).backgroundColor;
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((blob) => save(`${name}.png`, "image/png", blob));
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(alone(svg));
  }
  function button(parent, words, help, act) {
    const one = document.createElement("button");
    one.type = "button";
    one.textContent = words;
    one.title = help;
    one.addEventListener("click", () => act(one));
    return parent.appendChild(one);
  }

  // ---- A plot.
  /** Draws a figure; of one that lives, its data are `given`, and what is returned takes new ones. */
  function plot(figure, given) {
    let data = given ?? JSON.parse(figure.querySelector("script.data").textContent);
    const svg = figure.querySelector(":scope > svg");
    const name = data.title.replace(/[^\w.-]+/g, "-").toLowerCase();
    const named = data.series.length > 0 && typeof data.series[0].xs[0] === "string";
    const pointsOf = (data) => data.series.map((one) =>
      one.xs.map((x, at) => ({ x, y: one.ys[at], half: one.spread?.[at] ?? 0 })).filter((p) => Number.isFinite(p.y) && (named || Number.isFinite(p.x))));
    let points = pointsOf(data);
    if (!given && points.every((list) => list.length === 0)) return;
    const off = new Set();
    let logY = data.log_y, view = null, stops = [], place = null, x = null, top = 26, size = { width: 0, height: 0 };

    const bar = document.createElement("div");
    bar.className = "tools";
    const reset = button(bar, "all", "Show all again", () => zoom(null));
    if (!given && points.flat().every((p) => p.y > 0)) {
      const scale = button(bar, "log", "Logarithmic or linear values", () => {
        logY = !logY;
        scale.setAttribute("aria-pressed", String(logY));
        draw();
      });
      scale.setAttribute("aria-pressed", String(logY));
    }
    button(bar, "CSV", "The values as a table", () => save(`${name}.csv`, "text/csv", csv(data)));
    button(bar, "SVG", "The drawing", () => save(`${name}.svg`, "image/svg+xml", alone(svg)));
    button(bar, "PNG", "The drawing as an image", () => picture(svg, name));
    figure.querySelector("figcaption").append(bar);

    const box = figure.appendChild(document.createElement("div"));
    box.className = "asked";
    box.setAttribute("aria-live", "polite");
    svg.setAttribute("tabindex", "0");

    const entries = [...figure.querySelectorAll(".legend li")];
    entries.forEach((entry, slot) => {
      entry.tabIndex = 0;
      entry.setAttribute("role", "button");
      const toggle = (only) => {
        const alone = only && !off.has(slot) && off.size === entries.length - 1;
        if (only) entries.forEach((_, other) => (alone || other === slot ? off.delete(other) : off.add(other)));
        else if (!off.delete(slot)) off.add(slot);
        entries.forEach((one, other) => one.setAttribute("aria-pressed", String(!off.has(other))));
        draw();
      };
      entry.setAttribute("aria-pressed", "true");
      entry.addEventListener("click", (event) => toggle(event.shiftKey));
      entry.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle(event.shiftKey);
      });
    });

    function zoom(to) {
      view = to;
      draw();
    }
    const inView = () => points.map((list, slot) => (off.has(slot) ? [] : list.filter((p) => !view || (p.x >= view[0] && p.x <= view[1]))));

    function draw() {
      const seen = inView().flat();
      const all = Math.max(280, figure.clientWidth);
      svg.replaceChildren();
      reset.hidden = !view;
      hide();
      // Values: zoomed in, only what is in view counts; else linear axes begin at 0.
      const ends = seen.flatMap((p) => [p.y - p.half, p.y + p.half]).filter((y) => Number.isFinite(y) && (!logY || y > 0));
      let [low, high] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [logY ? 1 : 0, 1];
      if (logY) [low, high] = [beside(low / 1.02, -1), beside(high * 1.02, 1)];
      else {
        // Bars that are almost as long as each other would look the same from zero on.
        if (named && low > 0.8 * high && low < high) low -= high - low;
        else if (!view || named) low = Math.min(low, 0);
        if (low === high) [low, high] = low === 0 ? [0, 1] : [Math.min(0, low), Math.max(0, high)];
        const by = step(high - low, 5);
        [low, high] = [Math.floor(low / by + 1e-9) * by, Math.ceil(high / by - 1e-9) * by];
      }
      const right = all - RIGHT;
      const values = axis(low, high, 1, 0, logY, 5).ticks, words = ticksOf(values);
      const left = Math.max(34, 12 + Math.max(0, ...words.map(wide)), named ? overhang(right) : 0);
      const begins = named && !logY && low > 0 ? ` (the axis begins at ${rounded(ticksOf([low, ...values])[0])})` : "";
      const titles = wrap(data.y + begins, all), below = wrap(data.x, right - left);
      // Above bars stand their values.
      top = (named ? 16 : 10) + LINE * titles.length;
      const bottom = top + TALL - (all < 460 ? 40 : 0);
      const foot = bottom + (named ? namesHeight((right - left) / data.series[0].xs.length) : LINE + 6);
      size = { width: all, height: foot + LINE * below.length + 4 };
      svg.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
      const y = axis(low, high, bottom, top, logY, 5);
      y.ticks.forEach((tick, at) => {
        make("line", { x1: left, x2: right, y1: y.at(tick), y2: y.at(tick), class: "grid" }, svg);
        label(svg, left - 7, y.at(tick) + 4, "end", words[at]);
      });
      titles.forEach((words, at) => label(svg, 0, 12 + LINE * at, "quiet", words));
      below.forEach((words, at) => label(svg, (left + right) / 2, foot + LINE * (at + 0.8), "middle quiet", words));
      if (named) bars(y, left, right, bottom);
      else lines(y, left, right, bottom);
      make("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }, svg);
      place = { left, right, bottom };
    }

    function lines(y, left, right, bottom) {
      const all = points.flat().map((p) => p.x).filter((at) => !data.log_x || at > 0);
      let [low, high] = view ?? [Math.min(...all), Math.max(...all)];
      if (!view && data.log_x) [low, high] = low === high ? [low / 2, high * 2] : [low / 1.04, high * 1.04];
      if (!view && !data.log_x) {
        // From zero, unless the values begin far from it.
        const room = (high - low) * 0.04;
        if (low > 0.25 * high && low < high) [low, high] = [low - room, high + room];
        else low = Math.min(0, low);
        if (low === high) high = low + 1;
      }
      x = axis(low, high, left, right, data.log_x, Math.max(3, Math.floor((right - left) / 75)));
      // Few values: ticks at them and nowhere else, those at the ends first, then the round ones.
      const places = [...new Set(all)].sort((a, b) => a - b).filter((one) => one >= low && one <= high);
      const few = new Set(all).size <= PLACES && places.length > 1;
      const ticks = few ? [places[0], places.at(-1), ...places.slice(1, -1).sort((a, b) => figures(a) - figures(b))] : x.ticks;
      const said = few ? ticks.map((tick) => rounded(digits(tick))) : ticksOf(ticks);
      const written = [];
      for (const [number, tick] of ticks.entries()) {
        const at = x.at(tick), words = said[number], half = wide(words) / 2 + 1.5;
        make("line", { x1: at, x2: at, y1: top, y2: bottom, class: "grid" }, svg);
        if (written.some(([from, to]) => at + half > from && at - half < to)) continue;
        written.push([at - half, at + half]);
        label(svg, at, bottom + 17, "middle", words);
      }
      const clip = `clip-${Math.random().toString(36).slice(2)}`;
      make("rect", { x: left - 6, y: top - 7, width: right - left + 12, height: bottom - top + 14 }, make("clipPath", { id: clip }, svg));
      const area = make("g", { "clip-path": `url(#${clip})` }, svg);
      stops = [];
      points.forEach((list, slot) => {
        if (off.has(slot)) return;
        const group = make("g", { class: `series p${slot % 8}` }, area);
        const drawn = list.filter((p) => (!data.log_x || p.x > 0) && (!logY || p.y > 0));
        const spread = drawn.filter((p) => p.half > 0 && (!logY || p.y > p.half));
        if (spread.length > 1) {
          const edge = [...spread.map((p) => [p.x, p.y + p.half]), ...spread.toReversed().map((p) => [p.x, p.y - p.half])];
          make("polygon", { points: edge.map(([a, b]) => `${x.at(a)},${y.at(b)}`).join(" "), class: `spread p${slot % 8}` }, group);
        }
        const path = drawn.map((p, n) => `${n ? "L" : "M"}${x.at(p.x).toFixed(2)} ${y.at(p.y).toFixed(2)}`).join("");
        const inside = drawn.filter((p) => p.x >= low && p.x <= high), own = data.series[slot];
        if (!own.printed) make("path", { d: path, class: `curve p${slot % 8}`, "stroke-dasharray": DASHES[slot % 8] }, group);
        if (own.printed) inside.forEach((p) => printed(group, data.series, slot, x.at(p.x), y.at(p.y)));
        else if (inside.length <= MARKED) inside.forEach((p) => mark(group, slot, x.at(p.x), y.at(p.y)));
        for (const p of inside) stops.push({ pixel: x.at(p.x), key: p.x, slot, p });
      });
    }

    function bars(y, left, right, bottom) {
      const names = data.series[0].xs, drawn = data.series.map((_, slot) => slot).filter((slot) => !off.has(slot));
      const visible = drawn.filter((slot) => !data.series[slot].printed), ofPaper = drawn.filter((slot) => data.series[slot].printed);
      const part = (right - left) / names.length, width = (part * 0.8) / Math.max(1, visible.length);
      x = null;
      stops = [];
      const lines = inLines(part);
      names.forEach((one, at) => {
        const middle = left + part * (at + 0.5), turn = `rotate(-45 ${middle} ${bottom + 14})`;
        if (lines) lines[at].forEach((words, line) => label(svg, middle, bottom + 1 + LINE * (line + 1), "middle", words));
        else make("text", { x: middle, y: bottom + 14, class: "end", transform: turn }, svg).textContent = one;
      });
      // Values stand above the bars if there is room for all of them.
      const said = visible.every((slot) => !data.series[slot].spread && points[slot].every((p) => valued(shown(p.y)) + 1.5 <= width));
      // Where the marks of printed values stand: in the middle of the bars that they are for.
      const placed = (slot) => {
        const orders = (data.series[slot].of ?? []).map((one) => visible.indexOf(one)).filter((order) => order >= 0);
        const within = orders.length ? orders.reduce((sum, order) => sum + width * (order + 0.47), 0) / orders.length : part * 0.4;
        return points[slot].filter((p) => names.includes(p.x)).map((p) => [p, left + part * (names.indexOf(p.x) + 0.1) + within, y.at(p.y)]);
      };
      const marks = ofPaper.flatMap(placed);
      visible.forEach((slot, order) => {
        const group = make("g", { class: `series p${slot % 8}` }, svg);
        for (const p of points[slot]) {
          const at = names.indexOf(p.x), from = left + part * (at + 0.1) + width * order;
          const high = y.at(logY ? p.y : Math.max(p.y, 0)), base = logY ? bottom : Math.min(bottom, y.at(Math.min(p.y, 0)));
          make("rect", { x: from, y: high, width: width * 0.94, height: Math.max(0, base - high), class: `fill point p${slot % 8}` }, group);
          const over = marks.filter(([, x, y]) => Math.abs(x - from - width * 0.47) < width / 2 && y >= high - 22 && y < high + 6);
          if (said) label(group, from + width * 0.47, Math.min(high, ...over.map(([, , y]) => y - 5)) - 4, "middle value", shown(p.y));
          if (p.half > 0) make("line", { x1: from + width * 0.47, x2: from + width * 0.47, y1: y.at(p.y - p.half), y2: y.at(p.y + p.half), class: "whisker" }, group);
          stops.push({ pixel: left + part * (at + 0.5), key: p.x, slot, p });
        }
      });
      for (const slot of ofPaper) {
        const group = make("g", { class: `series p${slot % 8}` }, svg);
        for (const [p, x, y] of placed(slot)) {
          printed(group, data.series, slot, x, y);
          stops.push({ pixel: left + part * (names.indexOf(p.x) + 0.5), key: p.x, slot, p });
        }
      }
    }
    /** Names below bars in lines, or nothing where they do not fit and are slanted. */
    function inLines(part) {
      const lines = data.series[0].xs.map((name) => wrap(name, part - 4));
      const fit = lines.every((one) => one.length <= 3 && one.every((words) => wide(words) <= part));
      return fit ? lines : null;
    }
    /** The room at the left that slanted names need, of which each ends below the middle of its bars. */
    function overhang(right) {
      const names = data.series[0].xs;
      if (inLines((right - 34) / names.length)) return 0;
      return Math.max(...names.map((name, at) => {
        const share = (at + 0.5) / names.length;
        return (0.71 * (wide(name) + TEXT) - right * share) / (1 - share);
      }));
    }
    function namesHeight(part) {
      const lines = inLines(part);
      if (lines) return 6 + LINE * Math.max(...lines.map((one) => one.length));
      return 14 + 0.71 * Math.max(...data.series[0].xs.map(wide));
    }

    // ---- Reading values.
    function hide() {
      box.hidden = true;
      svg.querySelector(".cursor")?.remove();
    }
    function read(key) {
      const same = stops.filter((stop) => stop.key === key);
      if (same.length === 0) return hide();
      const title = document.createElement("b");
      title.textContent = named ? key : `${data.x} ${rounded(digits(key))}`;
      const rows = same.map(({ slot, p }) => {
        const row = document.createElement("div"), dot = document.createElement("i");
        dot.className = `p${slot % 8}`;
        const one = data.series[slot].name, value = exact(p.y) + (p.half > 0 ? ` ± ${digits(p.half)}` : "");
        row.append(dot, data.series.length > 1 ? `${one}: ${value}` : value);
        return row;
      });
      box.replaceChildren(title, ...rows);
      svg.querySelector(".cursor")?.remove();
      const pixel = same[0].pixel;
      make("line", { x1: pixel, x2: pixel, y1: top, y2: place.bottom, class: "cursor", "data-key": key }, svg);
      box.hidden = false;
      const scale = svg.clientWidth / size.width, at = pixel * scale;
      const over = at + box.offsetWidth + 14 > figure.clientWidth;
      box.style.left = `${Math.max(0, over ? at - box.offsetWidth - 10 : at + 10)}px`;
      box.style.top = `${svg.getBoundingClientRect().top - figure.getBoundingClientRect().top + top}px`;
    }
    const keys = () => [...new Map(stops.toSorted((a, b) => a.pixel - b.pixel).map((stop) => [stop.key, stop.pixel])).entries()];
    const pointed = (event) => {
      const frame = svg.getBoundingClientRect();
      return ((event.clientX - frame.left) * size.width) / frame.width;
    };
    let from = null, brush = null;
    svg.addEventListener("pointermove", (event) => {
      const at = pointed(event);
      if (brush) {
        const to = Math.min(Math.max(at, place.left), place.right);
        brush.setAttribute("x", Math.min(from, to));
        brush.setAttribute("width", Math.abs(to - from));
        return;
      }
      const near = keys().reduce((best, one) => (best && Math.abs(best[1] - at) <= Math.abs(one[1] - at) ? best : one), null);
      if (near) read(near[0]);
    });
    svg.addEventListener("pointerleave", () => brush || hide());
    svg.addEventListener("pointerdown", (event) => {
      const at = pointed(event);
      if (named || event.button !== 0 || event.pointerType === "touch" || at < place.left || at > place.right) return;
      event.preventDefault();
      svg.focus({ preventScroll: true });
      svg.setPointerCapture(event.pointerId);
      from = at;
      brush = make("rect", { x: at, y: top, width: 0, height: place.bottom - top, class: "brush" }, svg);
    });
    svg.addEventListener("pointerup", () => {
      if (!brush) return;
      const [start, wide] = ["x", "width"].map((key) => Number(brush.getAttribute(key)));
      brush.remove();
      brush = null;
      if (wide > 6) zoom([x.value(start), x.value(start + wide)]);
    });
    svg.addEventListener("pointercancel", () => {
      brush?.remove();
      brush = null;
    });
    svg.addEventListener("dblclick", () => zoom(null));
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const all = keys().map(([key]) => key);
      const now = svg.querySelector(".cursor")?.dataset.key;
      const at = all.findIndex((key) => String(key) === now);
      if (event.key === "ArrowRight") read(all[Math.min(at + 1, all.length - 1)]);
      else if (event.key === "ArrowLeft") read(all[at < 0 ? all.length - 1 : Math.max(at - 1, 0)]);
      else if (event.key === "Home") read(all[0]);
      else if (event.key === "End") read(all.at(-1));
      else if (event.key === "Escape" && view) zoom(null);
      else if (event.key === "Escape") hide();
      else if ((event.key === "+" || event.key === "-") && x) {
        // Half or twice as much about the cursor, or the middle.
        const middle = at < 0 ? (place.left + place.right) / 2 : keys()[at][1];
        const reach = ((place.right - place.left) / 2) * (event.key === "+" ? 0.5 : 2);
        const whole = points.flat().map((p) => p.x);
        const [low, high] = [x.value(middle - reach), x.value(middle + reach)];
        zoom(low <= Math.min(...whole) && high >= Math.max(...whole) ? null : [low, high]);
      } else return;
      event.preventDefault();
    });

    let width = 0;
    const sizes = new ResizeObserver(() => {
      if (figure.clientWidth === width || figure.clientWidth === 0) return;
      width = figure.clientWidth;
      draw();
    });
    sizes.observe(figure);
    width = figure.clientWidth;
    draw();
    const update = (next) => {
      // While a reader rests on a value nothing moves.
      if (!box.hidden) return;
      data = next;
      points = pointsOf(data);
      draw();
    };
    return { update, end: () => sizes.disconnect() };
  }

  // ---- Figures that live.
  const living = new WeakMap();
  /** Draws an empty figure from `data`, or draws it again: series that a reader has hidden, and the part zoomed to, stay. */
  function show(figure, data) {
    const names = data.series.map((one) => one.name).join("\n"), old = living.get(figure);
    if (old?.names === names) return old.update(data);
    old?.end();
    living.delete(figure);
    figure.replaceChildren();
    const caption = figure.appendChild(document.createElement("figcaption"));
    caption.appendChild(document.createElement("b")).textContent = data.title;
    if (data.series.length === 0) {
      figure.appendChild(document.createElement("p")).textContent = "No values.";
      return;
    }
    if (data.series.length > 1) {
      const legend = figure.appendChild(document.createElement("ul"));
      legend.className = "legend";
      data.series.forEach((one, slot) => {
        const entry = legend.appendChild(document.createElement("li"));
        entry.className = `p${slot % 8}`;
        mark(entry.appendChild(make("svg", { viewBox: "0 0 14 14", class: "swatch", "aria-hidden": "true" })), slot, 7, 7);
        entry.append(one.name);
      });
    }
    make("svg", { role: "img", "aria-label": `${data.title}, ${data.y}` }, figure);
    if (data.note) {
      const note = figure.appendChild(document.createElement("p"));
      note.className = "how";
      note.textContent = data.note;
    }
    living.set(figure, { names, ...plot(figure, data) });
  }

  // ---- Light and dark: as the reader's system says, until the reader says otherwise.
  function theme() {
    const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark"
      || (getComputedStyle(document.documentElement).colorScheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
    const bar = document.createElement("div");
    bar.className = "theme";
    const one = button(bar, "", "Light or dark", () => {
      document.documentElement.style.colorScheme = dark() ? "light" : "dark";
      say();
    });
    const say = () => (one.textContent = dark() ? "☀ light" : "☾ dark");
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
    say();
    document.querySelector("header")?.prepend(bar);
  }

  theme();
  // Those without data are filled later.
  document.querySelectorAll("figure.plot:has(script.data)").forEach((figure) => plot(figure));
  // For a page that makes figures later, and for one whose figures live.
  window.forebayPlots = (root) => root.querySelectorAll("figure.plot").forEach((figure) => plot(figure));
  window.forebayPlots.show = show;
})();
