// The stream of events, and what of the page changes with each.

const REASONS = JSON.parse($("#reasons").textContent);
const HOUR = 720, EVENTS = 200;
/** A tab that nobody sees gives its place up after this time. */
const HIDDEN_MS = 60_000;
const shown = { now: null, points: [], events: [], paused: false };

// ---- Tiles and heading.
function tiles(now) {
  const inside = merged(now.links).filter((one) => one.is_inside);
  const sum = (which, at) => inside.reduce((sum, one) => sum + one[which][at], 0);
  const dropped = now.drops.reduce((sum, one) => sum + one[1], 0);
  const busiest = now.processors.reduce((most, one) => (one.load > (most?.load ?? -1) ? one : most), null);
  const [late, redone, refused] = now.odd;
  const all = [
    ["Outbound", bits(sum("received", 1)), packets(sum("received", 0))],
    ["Inbound", bits(sum("sent", 1)), packets(sum("sent", 0))],
    ["Busiest core", busiest ? percent(busiest.load) : NONE, busiest ? `${busiest.name}, crypto ${percent(busiest.crypto)}` : ""],
    ["In flight", si(now.in_flight[0], "packets"), `of ${si(now.in_flight[0] + now.in_flight[1], "packets")}`],
    ["Dropped", packets(dropped), `refused ${packets(refused)}; late ${si(late, "jobs/s")}; redone ${si(redone, "jobs/s")}`],
  ];
  const list = $("#tiles");
  all.forEach(([name, value, note], at) => {
    const tile = list.children[at] ?? list.appendChild(make("div", {}, make("dt"), make("dd", { class: "value" }), make("dd", { class: "note" })));
    [name, value, note].forEach((text, part) => put(tile.children[part], text));
  });
  heading(now, dropped);
}
function heading(now, dropped) {
  const out = now.processors.filter((one) => one.out).map((one) => one.name);
  const wrong = [];
  if (now.others?.[1]) wrong.push(now.others[0]);
  if (out.length) wrong.push(`processor ${out.join(", ")} is out`);
  if (now.guard.state === "missing") wrong.push("the guard of the host is missing");
  if (now.taps === "failed") wrong.push("packet capture has failed");
  if (dropped > 0) wrong.push(`${packets(dropped)} dropped`);
  const verdict = $("#verdict"), good = wrong.length === 0;
  verdict.className = `verdict ${good ? "good" : "bad"}`;
  put($(".sign", verdict), good ? "\u2713" : "!");
  put($(".words", verdict), good ? (now.others ? now.others[0] : "Nothing is dropped") : wrong.join("; "));
  put($("#program"), `forebay ${now.version}, ${now.config}, up ${span(now.uptime_s)}`);
  put($("#made"), `Shown by forebay ${now.version}; the last hour is kept in the gateway's memory.`);
}

// ---- Tables.
/** Times of jobs; what the core does in place is not dispatched, and has none. */
const dispatched = (response) => (response?.[0] > 0 || response?.[1] > 0 ? response : null);
function processors(now) {
  const columns = [["processor", ""], ["kind", "less"], ["load", ""], ["crypto", ""], ["packets/s", ""], ["bit/s", ""], ["jobs waiting", ""], ["predicted", ""], ["actual", ""], ["off by", ""], ["packets per job", "less"], ["alpha", "less"]];
  const rows = now.processors.map((one) => {
    const [predicted, actual, off] = dispatched(one.response) ?? [null, null, null];
    return { bad: one.out, cells: [one.out ? `${one.name} (out)` : one.name, one.kind, percent(one.load), percent(one.crypto), bare(one.packets), bare(one.bits),
      bare(one.queue), seconds(predicted), seconds(actual), seconds(off), bare(one.bundle), three(one.alpha)] };
  });
  fill($("#processors"), "Now", columns, rows, "No data plane runs.");
}
function links(now) {
  const columns = [["link", ""], ["side", ""], ["received, packets/s", ""], ["received, bit/s", ""], ["sent, packets/s", ""], ["sent, bit/s", ""], ["packets waiting", ""]];
  const rows = merged(now.links).map((one) => ({ cells: [one.name, one.is_inside ? "inside" : "outside", bare(one.received[0]), bare(one.received[1]), bare(one.sent[0]), bare(one.sent[1]), bare(one.queue)] }));
  fill($("#links"), "Now", columns, rows, "No data plane runs.");
}
function drops(now) {
  const columns = [["reason", ""], ["packets/s", ""], ["packets in all", ""], ["meaning", "words long"], ["what to do", "words long"]];
  const rows = now.drops.map(([reason, rate, total]) => {
    const link = reason.indexOf(": ");
    const [meaning, remedy] = (link < 0 ? REASONS.engine[reason] : REASONS.links[reason.slice(link + 2)]) ?? ["", ""];
    return { bad: rate > 0, cells: [reason, bare(rate), bare(total), meaning, { code: remedy }] };
  });
  fill($("#drops"), "Since the start", columns, rows, "No packet was dropped.");
}
function ends(sa) {
  const parts = [["time_s", span], ["use_time_s", (left) => `${span(left)} of use`], ["bytes", (left) => si(left, "B")], ["packets", (left) => si(left, "packets")]];
  const limits = parts.filter(([key]) => sa.hard[key] !== undefined && sa.left[key] !== undefined);
  const first = limits.map(([key, words]) => [sa.left[key] / Math.max(sa.hard[key], 1e-9), sa.left[key] <= 0 ? "expired" : words(sa.left[key])]).sort((a, b) => a[0] - b[0]);
  return first[0] ?? [2, "no limit"];
}
function sas(now) {
  const columns = [["SA", ""], ["direction", ""], ["SPI", ""], ["peer", "peer"], ["proposal", ""], ["left", ""], ["packets/s", ""], ["bit/s", ""], ["packets in all", "less"], ["forged packets/s", ""], ["replayed packets/s", ""]];
  const order = { rate: (a, b) => b.packets - a.packets, left: (a, b) => ends(a)[0] - ends(b)[0], name: (a, b) => a.name.localeCompare(b.name) }[$("#order").value];
  const rows = now.sas.toSorted((a, b) => order(a, b) || a.name.localeCompare(b.name)).map((sa) => {
    const [share, left] = ends(sa);
    return { bad: share <= 0.02 || sa.forged > 0, cells: [sa.name, sa.direction, sa.spi, sa.remote, sa.proposal, left, bare(sa.packets), bare(sa.bits), bare(sa.total), bare(sa.forged), bare(sa.replayed)] };
  });
  fill($("#sas"), "Now, with what is left of the lifetime", columns, rows, "There is no SA.");
  put($("#sas-said"), now.all_sas > rows.length ? `${rows.length} of ${now.all_sas} SAs: the busiest, and those that end first` : `${now.all_sas} SAs`);
}
function policies(now) {
  const networks = now.policies.some((one) => one.local !== undefined);
  const columns = [["policy", ""], ["direction", ""], ["action", ""], ["SAs", "words"], ...(networks ? [["this side", "words"], ["the peer's side", "words"]] : [])];
  const rows = now.policies.map((one) => ({ cells: [one.name, one.direction, one.action, one.sas.join(", ") || NONE, ...(networks ? [one.local.join(", ") || "any", one.remote.join(", ") || "any"] : [])] }));
  fill($("#policies"), "In the order in which they are looked at", columns, rows, "There is no policy.");
  const some = now.all_policies > rows.length ? `The first ${rows.length} of ${now.all_policies}. ` : "";
  put($("#policies-said"), networks ? some : `${some}Networks are shown with \u201caddresses = true\u201d in [page].`);
}
function others(now) {
  const facts = [];
  const time = (at) => new Date(1000 * at).toLocaleString([], { hour12: false });
  if (now.pair) {
    const { number, role, term, links, peer, in_sync, waiting, lag_s, take_overs, last_take_over, reason, waits } = now.pair;
    facts.push(["Pair, this gateway", `${number}, ${role}, term ${term}`], ["Peer", peer ? `${peer}, connections: ${links}` : "not heard", !peer],
      ["Records", in_sync ? "the standby has every record" : "the standby lacks records", !in_sync], ["Not acknowledged", `messages: ${waiting}; time to acknowledge ${seconds(lag_s)}`],
      ["Taken over", last_take_over ? `times: ${take_overs}; last ${time(last_take_over)}: ${reason ?? ""}` : `times: ${take_overs}`]);
    if (waits) facts.push(["Waits", `may lack records; would be active because ${waits}`, true]);
  }
  if (now.cluster) {
    const { name, members, shares, serves, unowned, connected, silence_s, lag_s, take_overs, trouble } = now.cluster;
    facts.push(["Cluster, this gateway", name], ["Gateways", `${members.length}: ${members.join(", ")}`], ["Shares", `serves ${serves.length} of ${shares}, without gateway ${unowned}`, unowned > 0],
      ["etcd", connected ? `answers; a transaction takes ${seconds(lag_s)}` : `does not answer${silence_s ? ` for ${span(silence_s)}` : ""}`, !connected], ["Taken over", `shares: ${take_overs}`]);
    if (trouble) facts.push(["In the way", trouble, true]);
  }
  facts.push(["Guard of the host", `${now.guard.state}; forged ${si(now.guard.forged, "packets")}, leaked ${si(now.guard.leaked, "packets")}`, now.guard.state === "missing"], ["Packet capture", now.taps || "off", now.taps === "failed"]);
  const list = $("#others dl");
  while (list.children.length > facts.length) list.lastChild.remove();
  facts.forEach(([name, value, bad], at) => {
    const fact = list.children[at] ?? list.appendChild(make("div", {}, make("dt"), make("dd")));
    put(fact.children[0], name);
    put(fact.children[1], value);
    fact.children[1].className = bad ? "bad" : "";
  });
  put($("#others-title"), now.pair || now.cluster ? "Other gateways and the host" : "The host");
  $("#others").hidden = false;
}
function events() {
  const items = shown.events.toReversed().map((one) => make("li", { class: one.bad ? "bad" : "" }, make("time", { datetime: new Date(1000 * one.at).toISOString() }, clock(one.at)), one.text));
  $("#events").replaceChildren(...(items.length ? items : [make("li", { class: "none" }, "Nothing has happened since the gateway began to look.")]));
}

// ---- Plots of the last hour.
const SERIES = 8;
function plots() {
  const { points } = shown, last = points.at(-1);
  if (points.length < 2) return;
  const xs = points.map((one) => (one.at - last.at) / 60);
  const names = (part) => Object.keys(Object.assign({}, ...points.slice(-12).map((one) => one[part])));
  const line = (name, of) => ({ name, xs, ys: points.map((one) => of(one) ?? null) });
  const draw = (id, title, y, series, note) => window.forebayPlots.show($(id), { title, x: "minutes from now", y, log_x: false, log_y: false, series: series.slice(0, SERIES).filter((one) => one.ys.some(Number.isFinite)), note });
  const scaled = (part, name, at, by) => (one) => (one[part][name]?.[at] == null ? null : one[part][name][at] * by);
  // Two lines each.
  const MOST = SERIES / 2, all = [names("links"), names("processors")], [link, processor] = all.map((list) => list.slice(0, MOST));
  const [links, processors] = all.map((list, at) => (list.length > MOST ? `The first ${MOST} of ${list.length} ${["links", "processors"][at]}.` : ""));
  const both = (list, part, kinds, by) => list.flatMap((name) => kinds.map(([words, at]) => line(`${name} ${words}`, scaled(part, name, at, by))));
  draw("#plot-bits", "Bits per second of the links", "Mbit/s", both(link, "links", [["received", 1], ["sent", 3]], 1e-6), links);
  draw("#plot-packets", "Packets per second of the links", "packets/s", both(link, "links", [["received", 0], ["sent", 2]], 1), links);
  draw("#plot-load", "Load, and the share of crypto in it", "% of the time", both(processor, "processors", [["load", 2], ["crypto", 3]], 100), processors);
  draw("#plot-finish", "Predicted and actual time to completion", "µs per job", both(processor.filter((name) => points.some((one) => one.processors[name]?.[6] > 0)), "processors", [["predicted", 5], ["actual", 6]], 1e6), processors);
  const waiting = [...processor.slice(0, 4).map((name) => line(`${name}, jobs`, scaled("processors", name, 4, 1))), ...link.slice(0, 3).map((name) => line(`${name}, packets`, scaled("links", name, 4, 1)))];
  draw("#plot-queues", "Queues and packets in flight", "jobs or packets", [line("in flight, packets", (one) => one.in_flight), ...waiting], processors || links);
  draw("#plot-drops", "Dropped packets", "packets/s", [line("dropped", (one) => one.dropped)]);
}

// ---- All of it.
function show() {
  const { now } = shown;
  if (!now) return;
  for (const part of [tiles, others, flows, processors, links, drops, sas, policies]) part(now);
}
const takes = {
  now(data) {
    shown.now = data;
    heard = Date.now();
    say(false, shown.paused ? "paused" : `live, ${clock(data.at)}`);
    if (!shown.paused) show();
  },
  point(data) {
    shown.points = shown.points.concat(data).slice(-HOUR);
    if (!shown.paused) soon(plots);
  },
  happened(data) {
    shown.events = shown.events.concat(data).slice(-EVENTS);
    soon(events);
  },
};
/** Once for all that comes at a time. */
const waiting = new Set();
function soon(what) {
  if (waiting.has(what)) return;
  waiting.add(what);
  setTimeout(() => (waiting.delete(what), what()), 50);
}
function say(bad, words) {
  const status = $("#status");
  status.className = bad ? "bad" : "";
  // Of the time that passes a screen reader says nothing.
  status.setAttribute("aria-live", bad || !words.startsWith("live") ? "polite" : "off");
  put(status, words);
  document.body.classList.toggle("stale", bad);
}

// ---- A gateway that stops, or a connection that has broken without a word.
const LATE_MS = 8_000, LOST_MS = 25_000;
let heard = 0;
setInterval(() => {
  const silence = Date.now() - heard;
  if (!stream || document.hidden || silence < LATE_MS) return;
  say(true, `nothing was heard for ${span(silence / 1000)}`);
  if (silence > LOST_MS) stream.abort();
}, 2000);

// ---- The stream: EventSource does not tell why it was refused.
let stream = null;
async function watch() {
  stream = new AbortController();
  heard = Date.now();
  Object.assign(shown, { points: [], events: [] });
  const answer = await fetch("events", { signal: stream.signal, headers: { Accept: "text/event-stream" }, cache: "no-store" });
  if (!answer.ok) throw new Error(await answer.text());
  soon(events);
  let rest = "";
  for (const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the gateway has ended the connection");
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      const [, kind, data] = message.match(/^event: (\w+)\ndata: (.*)$/) ?? [];
      takes[kind]?.(JSON.parse(data));
    }
  }
}
async function run() {
  for (let wait = 1; ; wait = Math.min(2 * wait, 10)) {
    const began = Date.now();
    try {
      await watch();
    } catch (error) {
      stream = null;
      // Goes on when the tab is seen again.
      if (document.hidden) return void (left = true);
      if (Date.now() - began > 10_000) wait = 1;
      say(true, `not connected: ${error.message.trim()}; tried again in ${wait} s`);
      await new Promise((done) => setTimeout(done, 1000 * wait));
    }
  }
}
let leave = 0, left = false;
document.addEventListener("visibilitychange", () => {
  clearTimeout(leave);
  if (document.hidden) leave = setTimeout(() => stream?.abort(), HIDDEN_MS);
  else if (left) ((left = false), run());
});

function pause() {
  shown.paused = !shown.paused;
  $("#pause").setAttribute("aria-pressed", String(shown.paused));
  put($("#pause"), shown.paused ? "Go on" : "Pause");
  say(false, shown.paused ? "paused" : "live");
  if (!shown.paused) (show(), plots());
}
$("#pause").addEventListener("click", pause);
document.addEventListener("keydown", (event) => {
  if (event.key === "p" && !event.ctrlKey && !event.metaKey && !event.altKey && !event.target.closest?.("input, select, textarea")) pause();
});
$("#order").addEventListener("change", show);
let resized = 0;
addEventListener("resize", () => {
  cancelAnimationFrame(resized);
  resized = requestAnimationFrame(() => shown.now && flows(shown.now));
});
run();
