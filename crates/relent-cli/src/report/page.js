// The report's script: draws the plots from the JSON in the page, by itself. No library, nothing is loaded.
"use strict";
(() => {
const json = id => JSON.parse(document.getElementById(id).textContent);
const records = json("records"), page = json("page");
const policies = page.policies, ideal = page.ideal;
const figure = name => page.figures.find(f => f.name === name);
const record = name => records.find(r => r.policy === name);
const hidden = new Set();
const COLOURS = 8;
policies.forEach((p, i) => { p.colour = `var(--s${i % COLOURS})`; p.dash = i < COLOURS ? "" : "6 3"; });
const shown = () => policies.filter(p => !hidden.has(p.name));

// ---- words and numbers -------------------------------------------------------------------------------------------
const group = text => text.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
function number(v) {
  if (v === null || v === undefined || !isFinite(v)) return "–";
  const a = Math.abs(v);
  if (a >= 1e9) return trim((v / 1e9).toFixed(2)) + " G";
  if (a >= 1e7) return trim((v / 1e6).toFixed(1)) + " M";
  if (a >= 99.95 || Number.isInteger(v)) return group(v.toFixed(0));
  return a >= 0.9995 ? trim(v.toFixed(a >= 9.995 ? 1 : 2)) : trim(Number(v.toPrecision(3)).toFixed(12));
}
const trim = text => text.includes(".") ? text.replace(/\.?0+$/, "") : text;
function seconds(v) {
  if (v === null || v === undefined || !isFinite(v)) return "–";
  const a = Math.abs(v);
  if (a === 0) return "0 s";
  if (a < 1e-3) return trim((v * 1e6).toPrecision(3)) + " µs";
  if (a < 1) return trim((v * 1e3).toPrecision(3)) + " ms";
  if (a < 120) return trim(v.toFixed(a < 10 ? 2 : 1)) + " s";
  if (a < 7200) { const s = Math.round(v); return `${Math.floor(s / 60)} min` + (s % 60 ? ` ${s % 60} s` : ""); }
  const m = Math.round(v / 60);
  return `${Math.floor(m / 60)} h` + (m % 60 ? ` ${m % 60} min` : "");
}
const percent = v => v === null || v === undefined || !isFinite(v) ? "–" : trim((v * 100).toFixed(v > 0.999 && v < 1 ? 3 : v < 0.01 ? 4 : v < 0.1 ? 2 : 1)) + " %";
const SHARES = new Set(["utilisation", "goodput_share", "success_share", "gave_up_share", "still_trying", "success_per_slot"]);
const format = name => name.endsWith("_s") && name !== "peak_1s" ? seconds : SHARES.has(name) ? percent : number;

const LONG = { drain_over_ideal: "time / ideal", recovery_s: "time to heal", time_ms: "time, ms", attempts_per_client: "attempts a client", goodput_share: "succeed in the end", success_share: "succeed of all", utilisation: "server busy", p99_s: "99 % wait less than", calls: "calls",
  load: "attempts a call", peak_over_capacity: "peak / capacity", attempts_per_packet: "attempts a packet", makespan_over_n: "slots a packet" };

// ---- elements ----------------------------------------------------------------------------------------------------
function el(tag, attrs = {}, ...inside) {
  const svg = ["svg", "g", "path", "text", "rect", "circle", "line", "clipPath", "defs", "title"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attrs)) if (value !== null && value !== undefined) {
    if (key === "style") node.style.cssText = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...inside.filter(child => child !== null && child !== undefined));
  return node;
}
const main = document.getElementById("main");
function section(id, title, how) {
  const node = el("section", { id }, el("h2", {}, title), el("p", { class: "how" }, how));
  main.append(node);
  return node;
}
const key = colour => el("span", { class: "key", style: `--c:${colour}` });

const tip = document.getElementById("tip");
function showTip(event, title, rows) {
  tip.replaceChildren(el("b", {}, title), el("table", {}, ...rows.map(([name, value, colour]) =>
    el("tr", {}, el("td", {}, colour ? key(colour) : "", colour ? " " : "", name), el("td", {}, value)))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect(), x = event.clientX, y = event.clientY;
  const left = x + 16 + box.width > innerWidth ? Math.max(4, x - 16 - box.width) : x + 16;
  const top = y + 16 + box.height > innerHeight ? Math.max(4, y - 16 - box.height) : y + 16;
  tip.style.left = left + scrollX + "px";
  tip.style.top = top + scrollY + "px";
}
const hideTip = () => { tip.hidden = true; };

// ---- axes --------------------------------------------------------------------------------------------------------
const TIMES = [15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];
function linearTicks(from, to, count, time) {
  const span = to - from || 1, wanted = span / count;
  let step = TIMES.find(t => time && wanted > 10 && t >= wanted);
  if (!step) {
    const power = 10 ** Math.floor(Math.log10(wanted));
    step = [1, 2, 5, 10].map(m => m * power).find(s => s >= wanted * 0.999);
  }
  const ticks = [];
  for (let t = Math.ceil(from / step - 1e-9) * step; t <= to + step * 1e-9; t += step) ticks.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return ticks;
}
function logTicks(from, to) {
  const decades = Math.log10(to / from), every = Math.max(1, Math.ceil(decades / 7));
  const all = factors => {
    const ticks = [];
    for (let p = Math.floor(Math.log10(from)); p <= Math.ceil(Math.log10(to)); p++) for (const f of factors) {
      const t = f * 10 ** p;
      if (t >= from * 0.999 && t <= to * 1.001 && (factors.length > 1 || p % every === 0)) ticks.push(t);
    }
    return ticks;
  };
  const tens = all([1]);
  return decades < 1.6 || tens.length < 3 ? all([1, 2, 5]) : tens;
}

// ---- one plot ----------------------------------------------------------------------------------------------------
// Plots of one group share their range and their cross-hair.
const groups = {};
const plots = [];
const join = name => groups[name] ??= { range: null, plots: [] };

/* spec: height, x {label, from, to, format, log, ticks, time}, y(view) -> {to, from, format, log, ticks, label},
   paint(view) -> [nodes], at(x, view) -> {x, title, rows, marks}, group, zoom */
function plot(host, spec) {
  const svg = el("svg", { role: "img", tabindex: "0", "aria-label": spec.label || "" });
  host.append(svg);
  const own = { range: null, plots: [] };
  const shared = spec.group ? join(spec.group) : own;
  const clip = "c" + plots.length;
  let view = null, cross = null, drag = null;
  const me = { draw, point, host };
  shared.plots.push(me);
  plots.push(me);

  function draw() {
    const width = Math.max(240, svg.clientWidth || host.clientWidth), height = spec.height || 230;
    const narrow = width < 480;
    const box = { left: spec.left ?? (narrow ? 46 : 60), right: width - 12, top: spec.top ?? 12, bottom: height - (spec.x.label ? 38 : 22) };
    const [from, to] = shared.range || [spec.x.from, spec.x.to];
    const fx = spec.x.log ? Math.log : v => v;
    const [a, b] = [fx(from), fx(to)];
    view = { width, height, box, from, to, narrow };
    view.x = v => box.left + (fx(v) - a) / (b - a || 1) * (box.right - box.left);
    view.back = px => { const v = a + (px - box.left) / (box.right - box.left) * (b - a); return spec.x.log ? Math.exp(v) : v; };
    const y = spec.y(view);
    const fy = y.log ? Math.log : v => v, low = fy(y.from ?? 0), high = fy(y.to);
    view.y = v => box.bottom - (Math.min(Math.max(y.log ? Math.log(Math.max(v, y.from)) : v, low), high) - low) / (high - low || 1) * (box.bottom - box.top);
    view.most = y.to; view.least = y.from ?? 0; view.log = !!y.log;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.height = height + "px";
    const marks = y.ticks || (y.log ? logTicks(y.from, y.to) : linearTicks(y.from ?? 0, y.to, height < 200 ? 3 : 5));
    // Long labels get the room that they need.
    box.left = Math.max(box.left, 11 + 6.7 * Math.max(0, ...marks.map(t => y.format(t).length)));
    const nodes = [el("defs", {}, el("clipPath", { id: clip },
      el("rect", { x: box.left, y: box.top - 6, width: box.right - box.left, height: box.bottom - box.top + 7 })))];
    for (const t of marks) {
      const at = view.y(t);
      nodes.push(el("path", { class: "grid", d: `M${box.left} ${at}H${box.right}` }),
        el("text", { x: box.left - 7, y: at + 4, "text-anchor": "end" }, y.format(t)));
    }
    const ticks = spec.x.ticks ? spec.x.ticks(view) : spec.x.log ? logTicks(from, to) : linearTicks(from, to, width / 110, spec.x.time);
    let free = -1e9;
    for (const t of ticks) {
      const at = view.x(t), label = spec.x.format(t), half = label.length * 3.4;
      nodes.push(el("path", { class: "grid", d: `M${at} ${box.top}V${box.bottom}` }));
      if (at - half < free) continue;
      free = at + half + 8;
      nodes.push(el("text", { x: Math.min(at, width - half), y: box.bottom + 16, "text-anchor": "middle" }, label));
    }
    nodes.push(el("path", { class: "axis", d: `M${box.left} ${box.bottom}H${box.right}` }));
    if (spec.x.label) nodes.push(el("text", { x: (box.left + box.right) / 2, y: box.bottom + 33, "text-anchor": "middle" }, spec.x.label));
    nodes.push(el("g", { "clip-path": `url(#${clip})`, class: "data" }, ...spec.paint(view)));
    if (spec.over) nodes.push(...spec.over(view));
    cross = el("g", { "pointer-events": "none" });
    nodes.push(cross);
    svg.replaceChildren(...nodes);
  }

  function point(x) {
    cross.replaceChildren();
    if (x === null || x < view.from || x > view.to) return null;
    const found = spec.at ? spec.at(x, view) : null;
    // Where nothing happens any more the moment is marked all the same.
    const at = view.x(found ? found.x : x);
    cross.append(el("path", { class: "cross", d: `M${at} ${view.box.top}V${view.box.bottom}` }),
      ...(found?.marks || []).map(([v, colour]) => el("circle", { cx: at, cy: view.y(v), r: 4, fill: colour, stroke: "var(--card)", "stroke-width": 1.5 })));
    return found;
  }
  const here = event => {
    const box = svg.getBoundingClientRect();
    return (event.clientX - box.left) / box.width * view.width;
  };
  const inside = px => Math.min(Math.max(px, view.box.left), view.box.right);
  function zoom(range) { shared.range = range; shared.plots.forEach(p => p.draw()); }
  svg.addEventListener("pointermove", event => {
    const px = here(event);
    if (drag !== null) {
      const [l, r] = [drag, inside(px)].sort((p, q) => p - q);
      cross.replaceChildren(el("rect", { class: "sel", x: l, y: view.box.top, width: r - l, height: view.box.bottom - view.box.top }));
      return;
    }
    if (spec.hover) return spec.hover(event, view);
    if (px < view.box.left - 4 || px > view.box.right + 4) { shared.plots.forEach(p => p.point(null)); return hideTip(); }
    const x = view.back(inside(px));
    let found = null;
    shared.plots.forEach(p => { const f = p.point(x); if (p === me) found = f; });
    if (found) showTip(event, found.title, found.rows); else hideTip();
  });
  svg.addEventListener("pointerleave", () => { shared.plots.forEach(p => p.point(null)); hideTip(); });
  if (spec.zoom === false) return me;
  svg.style.cursor = "crosshair";
  svg.addEventListener("pointerdown", event => {
    if (event.pointerType !== "mouse" || event.button !== 0) return;
    drag = inside(here(event));
    svg.setPointerCapture(event.pointerId);
    hideTip();
  });
  svg.addEventListener("pointerup", event => {
    if (drag === null) return;
    const [l, r] = [drag, inside(here(event))].sort((p, q) => p - q);
    drag = null;
    cross.replaceChildren();
    if (r - l > 6) zoom([view.back(l), view.back(r)]);
  });
  svg.addEventListener("dblclick", () => zoom(null));
  svg.addEventListener("keydown", event => {
    const middle = (view.from + view.to) / 2, half = (view.to - view.from) / 2;
    const step = { "+": [middle - half / 2, middle + half / 2], ArrowLeft: [view.from - half / 2, view.to - half / 2], ArrowRight: [view.from + half / 2, view.to + half / 2] }[event.key];
    if (event.key === "Escape" || event.key === "-") zoom(null);
    else if (step && !spec.x.log) { zoom([Math.max(0, step[0]), Math.max(half / 8, step[1])]); event.preventDefault(); }
  });
  return me;
}
const redraw = () => plots.forEach(p => p.draw());

const line = (view, points, colour, more = {}) => {
  let d = "", down = false;
  for (const [x, y] of points) {
    if (y === null || !isFinite(y) || (view.log && y <= 0)) { down = false; continue; }
    d += `${down ? "L" : "M"}${view.x(x).toFixed(1)} ${view.y(y).toFixed(1)}`;
    down = true;
  }
  return el("path", { d, fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round", ...more });
};
// What lies between two lines: how several runs differ.
const band = (view, points, colour) => {
  if (!points.length) return null;
  const at = (x, y) => `${view.x(x).toFixed(1)} ${view.y(view.log ? Math.max(y, view.least) : y).toFixed(1)}`;
  return el("path", { class: "band", fill: colour, d: "M" + [...points.map(q => at(q[0], q[2])), ...points.slice().reverse().map(q => at(q[0], q[1]))].join("L") + "Z" });
};
const several = Math.max(0, ...policies.map(p => p.bands ? p.bands.runs : 0));
const runsWords = records.some(r => r.seeds > several) ? `the first ${several} runs` : `${several} runs`;
const bandWords = several < 20 ? `line: mean; band: least to greatest of ${runsWords}` : `line: mean; band: nine of ten of ${runsWords}`;
const bandKey = () => several ? el("span", {}, el("i", { class: "bandKey" }), bandWords) : "";
// Steps between edges: values[i] holds from edges[i] to edges[i + 1].
const steps = (view, edges, low, high, attrs) => {
  let up = "", down = "";
  for (let i = 0; i + 1 < edges.length; i++) {
    const [l, r] = [view.x(edges[i]).toFixed(1), view.x(edges[i + 1]).toFixed(1)];
    up += `${i ? "L" : "M"}${l} ${view.y(high[i]).toFixed(1)}H${r}`;
    if (low) down = `L${r} ${view.y(low[i]).toFixed(1)}H${l}` + down;
  }
  return el("path", { d: up && low ? up + down + "Z" : up, ...attrs });
};
// The tops of steps, where there is anything.
const tops = (view, edges, values, attrs) => el("path", { ...attrs, d: values.map((v, i) => v > 0
  ? `${i && values[i - 1] > 0 ? "L" : "M"}${view.x(edges[i]).toFixed(1)} ${view.y(v).toFixed(1)}H${view.x(edges[i + 1]).toFixed(1)}` : "").join("") });
const reference = (view, y, words) => y > view.most || y < view.least ? [] : [
  el("path", { d: `M${view.box.left} ${view.y(y)}H${view.box.right}`, stroke: "var(--capacity)", "stroke-width": 1.5, "stroke-dasharray": "6 4", fill: "none" }),
  el("text", { class: "strong halo", x: view.box.right - 4, y: view.y(y) - 5, "text-anchor": "end" }, words)];
const shades = view => (page.troubles || []).map(t => el("rect", { class: "shade", x: view.x(Math.max(t.from, view.from)), y: view.box.top - 6,
  width: Math.max(0, view.x(Math.min(t.to, view.to)) - view.x(Math.max(t.from, view.from))), height: view.box.bottom - view.box.top + 6 }, el("title", {}, t.what)));
const legend = (host, items) => host.append(el("div", { class: "bar" }, el("div", { class: "legend" }, ...items)));
const lineKey = (name, colour, kind = "lineKey") => el("span", {}, el("i", { class: kind, style: `--c:${colour}` }), name);
const areaKey = (name, colour) => el("span", {}, key(colour), name);
// A policy's name in a legend hides and shows it everywhere.
const toggles = [];
const toggle = p => {
  const button = el("button", { "aria-pressed": "true", title: "Hide or show this policy", onclick: () => {
    if (hidden.has(p.name)) hidden.delete(p.name); else if (shown().length > 1) hidden.add(p.name);
    toggles.forEach(([name, b]) => b.setAttribute("aria-pressed", String(!hidden.has(name))));
    document.querySelectorAll("[data-policy]").forEach(node => { node.hidden = hidden.has(node.dataset.policy); });
    redraw();
  } }, el("i", { class: "lineKey", style: `--c:${p.colour}` }), p.name);
  toggles.push([p.name, button]);
  return button;
};
const buttons = (words, choices, start, pick) => {
  const node = el("div", { class: "group" }, words ? el("span", {}, words) : "");
  const all = choices.map(([name, value]) => el("button", { "aria-pressed": String(value === start), onclick: event => {
    all.forEach(b => b.setAttribute("aria-pressed", String(b === event.currentTarget)));
    pick(value);
  } }, name));
  node.append(...all);
  return node;
};

// ---- the short of it ---------------------------------------------------------------------------------------------
// Policies' names stand out where they begin a sentence.
const headline = document.getElementById("headline");
const starts = policies.flatMap(p => [" hurts most: ", " does worst: ", " does best: ", " needs ", ": "].map(end => [p.name, p.name + end]));
for (let rest = page.headline; rest;) {
  const found = starts.map(([name, start]) => [rest.startsWith(start) ? 0 : rest.indexOf(" " + start) + 1 || Infinity, name]).sort((a, b) => a[0] - b[0] || b[1].length - a[1].length)[0];
  if (!found || found[0] === Infinity) { headline.append(rest); break; }
  headline.append(rest.slice(0, found[0]), el("strong", {}, found[1]));
  rest = rest.slice(found[0] + found[1].length);
}

const METERS = page.herd ? ["drain_over_ideal", "attempts_per_client", "success_share", "utilisation", "peak_over_capacity"]
  : ["recovery_s", "goodput_share", "load", "time_ms", "makespan_over_n", "calls", "attempts_per_packet", "attempts_per_client", "success_share", "p99_s"];
function meters(p) {
  const mine = record(p.name) || {}, node = el("div", { class: "meters" });
  // Those that tell the policies apart come first.
  const values = name => records.map(r => r[name]).filter(v => v !== null && v !== undefined);
  const differs = name => Math.max(...values(name)) > Math.min(...values(name)) * 1.001;
  const twice = name => name === "attempts_per_client" && ["load", "calls", "attempts_per_packet"].some(other => !page.herd && values(other).length);
  const all = METERS.filter(name => values(name).length && !twice(name)), names = [...all.filter(differs), ...all.filter(name => !differs(name))].slice(0, 3);
  for (const name of names) {
    // One policy has nothing that it could be compared with.
    const most = SHARES.has(name) ? 1 : Math.max(...records.map(r => r[name] ?? 0), 1e-12), value = mine[name];
    node.append(el("span", { title: figure(name)?.meaning }, LONG[name] || figure(name)?.title || name),
      records.length < 2 && !SHARES.has(name) ? el("span", {}) : el("div", { class: "meter" }, el("i", { style: `width:${Math.min(100, (value ?? 0) / most * 100)}%;--c:${p.colour}` })),
      el("b", {}, format(name)(value) + (name === "drain_over_ideal" ? "×" : "")));
  }
  return node;
}
const cards = el("div", { class: "cards", id: "cards" });
main.append(cards);
for (const p of policies) cards.append(el("article", { class: "card " + p.tone },
  el("h3", {}, key(p.colour), p.name), p.words ? el("div", { class: "words" }, p.words) : null,
  el("div", { class: "verdict" }, p.label), el("ul", {}, ...p.why.map(why => el("li", {}, why))), meters(p)));

// ---- load over time ----------------------------------------------------------------------------------------------
const busy = p => p.bin > 0 && (p.load.first.some(v => v > 0) || p.load.retries.some(v => v > 0));
const loaded = policies.filter(busy);
const ends = loaded.map(p => p.load.first.length * p.bin);
// A policy that takes very much longer than the others is cut, so that the others can be seen.
const allTime = Math.max(...ends, 0), endTime = Math.min(allTime, Math.max(40 * Math.min(...ends), 1e-3));
const timeAxis = { label: "time", from: 0, to: endTime, format: seconds, time: true };

// The bins of a view, joined so that each is at least two pixels wide, as rates a second.
function bins(p, view) {
  const count = p.load.first.length, px = (view.box.right - view.box.left) / 2.5;
  const first = Math.max(0, Math.floor(view.from / p.bin)), last = Math.min(count, Math.ceil(view.to / p.bin));
  const width = Math.max(1, Math.ceil((view.to - view.from) / p.bin / px));
  const begin = Math.floor(first / width) * width, out = { edges: [begin * p.bin], width: width * p.bin, rates: {} };
  for (const lane of Object.keys(p.load)) out.rates[lane] = [];
  for (let i = begin; i < last; i += width) {
    out.edges.push((i + width) * p.bin);
    for (const [lane, values] of Object.entries(p.load)) {
      let sum = 0;
      for (let j = i; j < Math.min(i + width, count); j++) sum += values[j];
      out.rates[lane].push(sum / (width * p.bin));
    }
  }
  out.all = out.rates.first.map((v, i) => v + out.rates.retries[i]);
  return out;
}
let scale = "capacity";
function loadTop(view) {
  const tops = loaded.filter(p => !hidden.has(p.name)).map(p => Math.max(...bins(p, view).all, 1e-9));
  const most = Math.max(...tops, (ideal.capacity || 0) * 1.3);
  return scale === "capacity" && ideal.capacity ? Math.min(most, ideal.capacity * 6) : most;
}
if (loaded.length) {
  const node = section("load", "Load on the server over time", ideal.capacity
    ? page.herd ? "What arrives: first attempts and retries, stacked. The green area is what the server gets done: gaps in it below the dashed line are capacity that nobody uses, and everything above that line is turned away or waits."
      : "What arrives: first attempts and retries, stacked. The green line is what is answered while somebody still waits for it: the only useful work."
    : "What arrives: first attempts and retries, stacked. Green is what succeeds.");
  // Where runs differ in more than their noise, the stacks of one do not tell it all.
  const spread = p => p.bands && p.bands.attempts.mean.some((v, i) => p.bands.attempts.high[i] - p.bands.attempts.low[i] > .3 * Math.max(v, (ideal.capacity || 0) * p.bands.bin) + 6 * Math.sqrt(v));
  // The server may also work for clients that have gone.
  const vain = b => b.rates.served.map((v, i) => v - b.rates.connected[i] > ideal.capacity * .02 ? v - b.rates.connected[i] : 0);
  // Where one policy takes very much longer, the others are squeezed into the beginning.
  const soon = 1.2 * Math.max(page.herd && ideal.drain ? 1.25 * (ideal.begins + ideal.drain) : 0, ...ends.filter(end => end < endTime / 2.5));
  const begin = !(page.troubles || []).length && soon > 0 && endTime > 2 * soon ? [0, Number(soon.toPrecision(2))] : null;
  const bar = el("div", { class: "bar" }, el("div", { class: "legend" }, areaKey("first attempts", "var(--first)"), areaKey("retries", "var(--retry)"),
    page.herd || !ideal.capacity ? areaKey("served", "var(--served)") : lineKey("answered in time", "var(--served)"),
    page.herd && ideal.drain ? lineKey("ideal end", "var(--capacity)", "dotKey") : "",
    !ideal.capacity ? "" : page.herd ? lineKey("rejected or failed", "var(--rejected)") : lineKey("done in vain", "var(--rejected)"), ideal.capacity ? lineKey("capacity", "var(--capacity)", "dashKey") : "",
    loaded.some(spread) ? el("span", {}, el("i", { class: "bandKey" }), several < 20 ? `all attempts, least to greatest of ${runsWords}` : `all attempts, nine of ten of ${runsWords}`) : ""),
    begin ? buttons("time", [["all", null], ["first " + seconds(begin[1]), begin]], null, range => { join("time").range = range; redraw(); }) : "",
    buttons("scale", [...(ideal.capacity ? [["6 × capacity", "capacity"]] : []), ["all", "all"], ["log", "log"]], ideal.capacity ? "capacity" : "all", value => { scale = value; redraw(); }));
  node.querySelector(".how").append(" Drag to zoom, double-click to go back; all plots over time move together.");
  node.append(bar);
  for (const p of loaded) {
    const r = record(p.name) || {}, last = p === loaded[loaded.length - 1];
    const facts = [r.peak_over_capacity !== undefined && r.peak_over_capacity !== null ? `peak: ${number(r.peak_over_capacity)} × capacity` : null,
      r.drain_s !== undefined && r.drain_s !== null ? `drained after ${seconds(r.drain_s)}` : null].filter(Boolean).join(" · ");
    const panel = el("div", { class: "panel", "data-policy": p.name }, el("header", {}, el("h3", {}, key(p.colour), p.name), el("span", {}, p.label), el("span", {}, facts)));
    node.append(panel);
    plot(panel, { label: "Load over time: " + p.name, group: "time", height: (loaded.length > 3 ? 165 : 205) + (last ? 16 : 0), top: 24, x: last ? timeAxis : { ...timeAxis, label: null },
      y: view => { const to = loadTop(view); return scale === "log" ? { from: Math.max((ideal.capacity || to / 1e4) / 50, 1e-9), to, log: true, format: v => number(v) } : { to, format: v => number(v) + (v ? "/s" : "") }; },
      paint: view => {
        const b = bins(p, view), zero = b.all.map(() => view.least), nodes = shades(view);
        nodes.push(steps(view, b.edges, zero, b.rates.first, { fill: "var(--first)", "fill-opacity": .85 }),
          steps(view, b.edges, b.rates.first, b.all, { fill: "var(--retry)", "fill-opacity": .8 }),
          page.herd || !ideal.capacity ? steps(view, b.edges, zero, b.rates.served, { fill: "var(--served)", "fill-opacity": .75 })
            : steps(view, b.edges, null, b.rates.connected, { fill: "none", stroke: "var(--served)", "stroke-width": 2.5 }));
        if (spread(p)) nodes.push(band(view, p.bands.attempts.low.flatMap((v, i) => [0, 1].map(k => [(i + k) * p.bands.bin, v / p.bands.bin, p.bands.attempts.high[i] / p.bands.bin])).filter(q => q[0] >= view.from - p.bands.bin && q[0] <= view.to + p.bands.bin), "var(--ink)"));
        if (ideal.capacity) nodes.push(tops(view, b.edges, page.herd ? b.rates.rejected : vain(b), { stroke: "var(--rejected)", "stroke-width": 1.5, fill: "none" }));
        return nodes;
      },
      over: view => {
        const b = bins(p, view), nodes = ideal.capacity ? reference(view, ideal.capacity, `capacity ${number(ideal.capacity)}/s`) : [];
        const over = page.herd && ideal.drain ? ideal.begins + ideal.drain : -1;
        if (over > view.from && over < view.to) nodes.push(el("path", { d: `M${view.x(over)} ${view.box.top}V${view.box.bottom}`, stroke: "var(--capacity)", "stroke-width": 1.5, "stroke-dasharray": "1 4", fill: "none" }));
        let most = 0;
        b.all.forEach((v, i) => { if (v > b.all[most]) most = i; });
        if (b.all[most] > view.most * 1.001) {
          const at = view.x((b.edges[most] + b.edges[most + 1]) / 2), right = at > view.width * 0.5;
          // The peak of the table, at every width of the page and at every zoom.
          const r = record(p.name) || {}, peak = r.peak_over_capacity ?? null;
          const words = peak === null ? `▲ up to ${number(b.all[most])}/s` : `▲ peak: ${number(peak)} × capacity`;
          nodes.push(el("text", { class: "strong halo", x: Math.max(view.box.left, at + (right ? 5 : -5)), y: view.box.top - 9, "text-anchor": right ? "end" : "start" }, words));
        }
        return nodes;
      },
      at: (x, view) => {
        const b = bins(p, view), i = Math.min(b.all.length - 1, Math.floor((x - b.edges[0]) / b.width));
        if (i < 0 || x > b.edges[b.edges.length - 1]) return null;
        const rate = lane => number(b.rates[lane][i]) + "/s", mid = (b.edges[i] + b.edges[i + 1]) / 2;
        return { x: mid, title: `${p.name}, ${seconds(b.edges[i])} – ${seconds(b.edges[i + 1])}`, rows: [["first attempts", rate("first"), "var(--first)"], ["retries", rate("retries"), "var(--retry)"],
          ["rejected or failed", rate("rejected"), "var(--rejected)"], ["served", rate("served"), "var(--served)"], ["answered", rate("connected"), null], ["gave up", rate("gave_up"), null]] };
      } });
  }
}

// ---- connected over time -----------------------------------------------------------------------------------------
const cumulative = values => { let sum = 0; return values.map(v => sum += v); };
const two = () => { const node = el("div", { class: "two" }); main.append(node); return node; };
const half = (host, id, title, how) => {
  const node = el("section", { id }, el("h2", {}, title), el("p", { class: "how" }, how));
  host.append(node);
  return node;
};
let pair = two();
const nearest = (xs, x) => { let best = 0; xs.forEach((v, i) => { if (Math.abs(v - x) < Math.abs(xs[best] - x)) best = i; }); return best; };
if (loaded.some(p => p.load.connected.some(v => v > 0))) {
  const node = half(pair, "connected", page.herd ? "Connected over time" : "Calls answered over time",
    page.herd ? "How many clients are back. Nobody can be faster than the dashed ramp." : "Calls that got their answer, added up. A flat stretch is an outage.");
  // Of several runs the mean; where there is one, its own.
  loaded.forEach(p => {
    const all = p.bands?.connected, mean = all ? all.mean : cumulative(p.load.connected), bin = all ? p.bands.bin : p.bin;
    const points = values => [[0, 0], ...values.map((v, i) => [(i + 1) * bin, v])];
    p.total = mean;
    p.curve = { bin, mean, low: all?.low, high: all?.high, line: points(mean), band: all ? all.low.map((v, i) => [(i + 1) * bin, v, all.high[i]]) : [] };
  });
  const panel = el("div", { class: "panel" });
  node.append(panel);
  const all = page.herd ? ideal.clients || record(loaded[0].name)?.clients : Math.max(...loaded.map(p => p.total[p.total.length - 1]));
  const most = Math.max(...loaded.map(p => p.total[p.total.length - 1]), page.herd ? all : 0);
  plot(panel, { label: "Connected over time", group: "time", height: 280, x: timeAxis,
    y: () => ({ to: most, format: page.herd ? v => percent(v / all) : number, ticks: page.herd ? [0, .25, .5, .75, 1].map(s => s * all) : null }),
    paint: view => [...shades(view), ...(page.herd && ideal.drain ? [line(view, [[ideal.begins, 0], [ideal.begins + ideal.drain, all], [allTime, all]], "var(--capacity)", { "stroke-dasharray": "6 4", "stroke-width": 1.5 })] : []),
      ...shown().filter(busy).map(p => band(view, p.curve.band, p.colour)).filter(Boolean),
      ...shown().filter(busy).map(p => line(view, p.curve.line, p.colour, { "stroke-dasharray": p.dash }))],
    at: (x, view) => {
      const rows = [], marks = [];
      for (const p of shown().filter(busy)) {
        const i = Math.min(p.total.length - 1, Math.floor(x / p.curve.bin)), v = p.total[i], say = v => page.herd ? percent(v / all) : number(Math.round(v));
        const range = p.curve.low && p.curve.high[i] > p.curve.low[i] ? ` (${say(p.curve.low[i])} – ${say(p.curve.high[i])})` : "";
        rows.push([p.name, (page.herd ? `${number(Math.round(v))} = ${percent(v / all)}` : number(Math.round(v))) + range, p.colour]);
        marks.push([v, p.colour]);
      }
      if (page.herd && ideal.drain) rows.push(["ideal", number(Math.round(Math.min(1, Math.max(0, (x - ideal.begins) / ideal.drain)) * all)), null]);
      return { x, title: "after " + seconds(x), rows, marks };
    } });
  legend(panel, [...loaded.map(toggle), page.herd && ideal.drain ? lineKey("ideal", "var(--capacity)", "dashKey") : "", bandKey()]);
}

// ---- percentiles of the wait -------------------------------------------------------------------------------------
const waited = policies.filter(p => p.waits.length > 1 && p.waits[p.waits.length - 1][1] > 0);
if (waited.length) {
  const node = half(pair, "waits", "How long clients wait", page.herd ? "Read: so many per cent of the clients waited no longer than this. The right end is the unlucky few." : "Of the calls that succeeded: so many per cent took no longer than this.");
  const panel = el("div", { class: "panel" });
  node.append(panel);
  // Of several runs the mean, and how they differ.
  waited.forEach(p => {
    const all = p.bands?.waits;
    if (all?.mean.length > 1) p.waits = p.bands.shares.map((s, i) => [s, all.mean[i], all.low[i], all.high[i]]);
  });
  const last = Math.min(.9999, Math.max(...waited.map(p => Math.max(...p.waits.map(w => w[0]).filter(s => s < 1), .9))));
  // The first nine tenths are even; beyond, each tenth of the rest has the same width.
  const tail = s => .6 - Math.log10(Math.max(1 - s, (1 - last) / 1.6)), place = s => s < .9 ? s / .9 * 1.6 : tail(s);
  const share = v => v < 1.6 ? v / 1.6 * .9 : 1 - 10 ** (.6 - v);
  waited.forEach(p => { p.waits = p.waits.filter(w => w[0] <= last || w[0] >= 1); p.places = p.waits.map(w => place(w[0])); });
  const to = place(1), most = Math.max(...waited.map(p => Math.max(...p.waits.map(w => w[3] ?? w[1]))), ideal.drain || 0) * 1.03;
  const marksAt = [0, .25, .5, .75, .9, .99, .999, .9999].filter(s => place(s) < to - .1);
  plot(panel, { label: "Percentiles of the wait", height: 280, zoom: false,
    x: { label: "share of the clients", from: 0, to, format: v => v >= to ? "all" : trim((share(v) * 100).toFixed(4)) + " %", ticks: () => [...marksAt.map(place), to] },
    y: () => ({ to: most, format: seconds, ticks: linearTicks(0, most, 5, true) }),
    paint: view => [...(ideal.drain ? [line(view, Array.from({ length: 200 }, (_, i) => i / 199 * to).map(v => [v, ideal.begins + (v >= to ? 1 : share(v)) * ideal.drain]), "var(--capacity)", { "stroke-dasharray": "6 4", "stroke-width": 1.5 })] : []),
      ...waited.filter(p => !hidden.has(p.name) && p.waits[0].length > 2).map(p => band(view, p.waits.map((w, i) => [p.places[i], w[2], w[3]]), p.colour)),
      ...waited.filter(p => !hidden.has(p.name)).map(p => line(view, p.waits.map((w, i) => [p.places[i], w[1]]), p.colour, { "stroke-dasharray": p.dash }))],
    at: x => {
      const rows = [], marks = [];
      let title = "", at = x;
      for (const p of waited.filter(p => !hidden.has(p.name))) {
        const i = nearest(p.places, x);
        title = p.waits[i][0] >= 1 ? "everybody" : percent(p.waits[i][0]) + " of the clients";
        at = p.places[i];
        const [, mean, low, high] = p.waits[i];
        rows.push([p.name, "≤ " + seconds(mean) + (high > low ? ` (${seconds(low)} – ${seconds(high)})` : ""), p.colour]);
        marks.push([p.waits[i][1], p.colour]);
      }
      return { x: at, title, rows, marks };
    } });
  legend(panel, [...waited.map(toggle), ideal.drain ? lineKey("ideal", "var(--capacity)", "dashKey") : "", bandKey()]);
}

// ---- cost against time -------------------------------------------------------------------------------------------
if (pair.children.length) pair = two();
const dots = page.axes ? policies.map(p => ({ p, r: record(p.name) || {} })).filter(d => [0, 1].every(i => d.r[page.axes[i]] > 0)) : [];
if (dots.length > 1) {
  const [cost, time] = page.axes, best = page.herd && ideal.figures && ideal.figures[cost] && ideal.figures[time] ? [ideal.figures[cost], ideal.figures[time]] : null;
  const node = half(pair, "tradeoff", "Cost against time",
    "One dot a policy. The corner at the lower left is where to be: few attempts, soon done. Of those on the dotted line none is beaten by another in both." + (several ? " Faint dots are single runs." : ""));
  const panel = el("div", { class: "panel" });
  node.append(panel);
  const range = (name, i) => {
    const all = dots.flatMap(d => [d.r[name], ...(d.p.runs[name] || [])]).filter(v => v > 0);
    if (best) all.push(best[i]);
    const [low, high] = [Math.min(...all), Math.max(...all)], log = high > 8 * low;
    return log ? { from: low / 1.5, to: high * 1.6, log } : { from: 0, to: high * 1.18, log };
  };
  const [rx, ry] = [range(cost, 0), range(time, 1)];
  const name = figure(time).name;
  // The policies that no other one beats in both.
  const front = view => {
    const alive = dots.filter(d => !hidden.has(d.p.name));
    const best = alive.filter(d => !alive.some(o => o !== d && o.r[cost] <= d.r[cost] && o.r[time] <= d.r[time] && (o.r[cost] < d.r[cost] || o.r[time] < d.r[time])));
    best.sort((a, b) => a.r[cost] - b.r[cost]);
    const steps = best.flatMap((d, i) => i ? [[d.r[cost], best[i - 1].r[time]], [d.r[cost], d.r[time]]] : [[d.r[cost], d.r[time]]]);
    front.boxes = steps.slice(1).map((q, i) => [[view.x(steps[i][0]), view.x(q[0])].sort((a, b) => a - b), [view.y(steps[i][1]), view.y(q[1])].sort((a, b) => a - b)]).map(([x, y]) => [x[0] - 2, y[0] - 2, x[1] + 2, y[1] + 2]);
    return best.length > 1 ? [line(view, steps, "var(--soft)", { class: "front", "stroke-width": 1.2, "stroke-dasharray": "3 3" })] : [];
  };
  plot(panel, { label: "Attempts against time", height: 320, zoom: false, top: 22, left: 66,
    x: { label: page.axis_words[0], from: rx.from, to: rx.to, log: rx.log, format: number },
    y: () => ({ from: ry.from, to: ry.to, log: ry.log, format: format(name) }),
    paint: view => [...front(view), ...shown().flatMap(p => (p.runs[cost] || []).length > 1 ? p.runs[cost].map((v, i) => v > 0 && p.runs[time]?.[i] > 0 ? el("circle", { cx: view.x(v), cy: view.y(p.runs[time][i]), r: 2.5, fill: p.colour, opacity: .35 }) : "") : [])],
    over: view => {
      const nodes = [el("text", { x: 4, y: 12 }, page.axis_words[1])];
      const spots = dots.filter(d => !hidden.has(d.p.name)).map(d => ({ x: view.x(d.r[cost]), y: view.y(d.r[time]), words: d.p.name, colour: d.p.colour }));
      if (best) spots.push({ x: view.x(best[0]), y: view.y(best[1]), words: "ideal" });
      // Names go where they cover neither a dot nor another name.
      const taken = [...spots.map(s => [s.x - 8, s.y - 8, s.x + 8, s.y + 8]), ...front.boxes];
      const clash = box => taken.filter(t => t[0] < box[2] && t[2] > box[0] && t[1] < box[3] && t[3] > box[1]).length + (box[0] < view.box.left - 40 || box[2] > view.width || box[1] < 14 || box[3] > view.box.bottom + 4 ? 9 : 0);
      for (const s of spots) {
        nodes.push(s.colour ? el("circle", { cx: s.x, cy: s.y, r: 7, fill: s.colour, stroke: "var(--card)", "stroke-width": 2 })
          : el("text", { class: "strong", x: s.x, y: s.y + 7, "text-anchor": "middle", style: "font-size:20px" }, "★"));
      }
      for (const s of spots) {
        const w = s.words.length * 7 + 4, places = [];
        for (const k of [0, -1, 1, -2, 2, -3, 3, -4, 4]) for (const right of [true, false]) {
          const y = s.y + k * 13, x = right ? s.x + 11 : s.x - 11;
          places.push({ x, y, right, box: right ? [x, y - 6, x + w, y + 6] : [x - w, y - 6, x, y + 6], k });
        }
        const found = places.find(place => !clash(place.box)) || places[0];
        taken.push(found.box);
        if (Math.abs(found.k) > 1) nodes.push(el("path", { d: `M${s.x} ${s.y}L${found.x + (found.right ? -2 : 2)} ${found.y}`, stroke: s.colour || "var(--soft)", "stroke-width": 1 }));
        nodes.push(el("text", { class: "strong halo", x: found.x, y: found.y + 4, "text-anchor": found.right ? "start" : "end", style: s.colour ? `fill:${s.colour}` : null }, s.words));
      }
      return nodes;
    },
    hover: (event, view) => {
      const box = event.currentTarget.getBoundingClientRect(), [mx, my] = [(event.clientX - box.left) / box.width * view.width, event.clientY - box.top];
      const near = dots.filter(d => !hidden.has(d.p.name)).map(d => [Math.hypot(view.x(d.r[cost]) - mx, view.y(d.r[time]) - my), d]).sort((a, b) => a[0] - b[0])[0];
      if (!near || near[0] > 40) return hideTip();
      const d = near[1], sd = n => d.r[n + "_sd"] ? ` ± ${format(n)(d.r[n + "_sd"])}` : "";
      showTip(event, d.p.name, [cost, time].map(n => [figure(n).title, format(n)(d.r[n]) + sd(n), null]));
    } });
}

// ---- attempts a client -------------------------------------------------------------------------------------------
const counted = policies.filter(p => p.attempts.some(v => v > 0));
if (counted.length && counted.some(p => p.attempts.filter(v => v > 0).length > 1 || counted.length > 1)) {
  const node = half(pair, "attempts", "How often clients try", "The share of the clients that were done, or gave up, after so many attempts.");
  const panel = el("div", { class: "panel" });
  node.append(panel);
  counted.forEach(p => { p.sum = p.attempts.reduce((a, b) => a + b, 0); });
  // Beyond the attempts of 99.9 % there is nothing to see.
  const reach = p => { let seen = 0; for (let i = 0; i < p.attempts.length; i++) if ((seen += p.attempts[i]) >= p.sum * .999) return i; return p.attempts.length - 1; };
  const to = Math.max(...counted.map(reach), 2) + 1;
  const shares = p => Array.from({ length: to }, (_, i) => (p.attempts[i + 1] || 0) / p.sum);
  const edges = Array.from({ length: to + 1 }, (_, i) => i + .5);
  plot(panel, { label: "Attempts a client", height: 320, zoom: false, top: 22,
    x: { label: "attempts", from: .5, to: to + .5, format: number, ticks: view => { const step = [1, 2, 5, 10, 20, 50, 100, 200].find(n => to / n <= view.width / 45) || 500; return Array.from({ length: to }, (_, i) => i + 1).filter(n => step === 1 || n % step === 0); } },
    y: () => ({ to: Math.max(...counted.filter(p => !hidden.has(p.name)).flatMap(shares)), format: percent }),
    paint: view => counted.filter(p => !hidden.has(p.name)).flatMap(p => [
      ...(counted.length > 3 ? [] : [steps(view, edges, edges.map(() => 0), shares(p), { fill: p.colour, "fill-opacity": .15 })]),
      steps(view, edges, null, shares(p), { fill: "none", stroke: p.colour, "stroke-width": 2, "stroke-dasharray": p.dash })]),
    at: x => {
      const n = Math.max(1, Math.round(x)), rows = counted.filter(p => !hidden.has(p.name)).map(p => [p.name, percent((p.attempts[n] || 0) / p.sum), p.colour]);
      return { x: n, title: n === 1 ? "1 attempt" : n + " attempts", rows, marks: [] };
    } });
  legend(panel, counted.map(toggle));
}
if (!pair.children.length) pair.remove();

// ---- more and fewer clients --------------------------------------------------------------------------------------
if (page.sizes) {
  const s = page.sizes, own = page.size, log = s.clients.at(-1) > 25 * s.clients[0];
  const words = s.noun;
  const node = section("sizes", `More and fewer ${words}`, `The same with another number of ${words}${s.runs > 1 ? `: means of ${s.runs} runs` : ""}.${s.plots.every(q => figure(q.figure)?.best === "less") ? " What bends upwards hurts when you grow." : ""}` + (s.expected.some(v => v !== null) ? " The wide line is theory." : ""));
  const pairNode = el("div", { class: "two" });
  node.append(pairNode);
  for (const q of s.plots) {
    const panel = el("div", { class: "panel" }, el("header", {}, el("h3", {}, q.words)));
    pairNode.append(panel);
    const lines = q.lines.map(l => ({ ...l, p: policies.find(p => p.name === l.policy) || policies[0] }));
    const alive = () => lines.filter(l => !hidden.has(l.policy));
    const theory = q === s.plots[0] ? s.expected : [];
    const tops = lines.map(l => Math.max(...l.values.filter(v => v !== null))).filter(v => v > 0), far = Math.max(...tops) > 8 * Math.min(...tops);
    const low = Math.min(...lines.flatMap(l => l.values.filter(v => v > 0)));
    const say = format(q.figure);
    plot(panel, { label: q.words, height: 300, zoom: false, x: { label: words, from: s.clients[0], to: s.clients.at(-1), log, format: number, ticks: log ? () => s.clients : null },
      y: () => ({ from: far ? low / 1.2 : 0, to: Math.max(...tops, ...theory.filter(v => v !== null)) * (far ? 1.2 : 1.05), log: far, format: say }),
      paint: view => [own ? el("path", { class: "own", d: `M${view.x(own)} ${view.box.top}V${view.box.bottom}`, stroke: "var(--capacity)", "stroke-width": 1.2, "stroke-dasharray": "1 4", fill: "none" }) : "",
        theory.some(v => v !== null) ? line(view, s.clients.map((n, i) => [n, theory[i]]), lines[0].p.colour, { "stroke-width": 8, "stroke-opacity": .18 }) : "",
        ...alive().flatMap(l => [line(view, s.clients.map((n, i) => [n, l.values[i]]), l.p.colour, { "stroke-dasharray": l.p.dash }),
          ...s.clients.map((n, i) => l.values[i] === null ? "" : el("circle", { cx: view.x(n), cy: view.y(l.values[i]), r: 2.6, fill: l.p.colour }))])],
      at: x => {
        const i = nearest(log ? s.clients.map(Math.log) : s.clients, log ? Math.log(x) : x), rows = alive().map(l => [l.policy, say(l.values[i]), l.p.colour]);
        if (theory[i] !== null && theory[i] !== undefined) rows.push(["by theory", say(theory[i]), null]);
        return { x: s.clients[i], title: `${number(s.clients[i])} ${words}`, rows, marks: alive().filter(l => l.values[i] !== null).map(l => [l.values[i], l.p.colour]) };
      } });
    legend(panel, [...lines.map(l => toggle(l.p)), own ? lineKey("as simulated above", "var(--capacity)", "dotKey") : ""]);
  }
}

// ---- arrival raster ----------------------------------------------------------------------------------------------
const sampled = policies.filter(p => p.raster.some(client => client.length));
if (sampled.length) {
  const node = section("raster", "When clients come back", "Each row is one of the sampled clients, each mark one of its attempts. Vertical stripes are clients that act together: that is the herd. Grey marks are first attempts.");
  for (const p of sampled) {
    const last = p === sampled[sampled.length - 1];
    const panel = el("div", { class: "panel", "data-policy": p.name }, el("header", {}, el("h3", {}, key(p.colour), p.name), el("span", {}, `${p.raster.length} of the clients`)));
    node.append(panel);
    const rows = p.raster.length;
    plot(panel, { label: "Attempts of sampled clients: " + p.name, group: "time", height: last ? 166 : 150, x: { ...timeAxis, label: last ? "time" : null, to: loaded.length ? endTime : Math.max(...sampled.flatMap(q => q.raster.flat())) },
      y: () => ({ to: rows, format: () => "", ticks: [] }),
      paint: view => {
        const high = Math.max(1.5, (view.box.bottom - view.box.top) / rows), marks = ["", ""];
        p.raster.forEach((client, row) => client.forEach((t, k) => {
          if (t >= view.from && t <= view.to) marks[Math.min(k, 1)] += `M${view.x(t).toFixed(1)} ${view.y(row + 1).toFixed(1)}v${high.toFixed(1)}`;
        }));
        return [...shades(view), ...marks.map((d, k) => el("path", { d, stroke: k ? p.colour : "var(--soft)", "stroke-width": 1.6, "stroke-opacity": .85, fill: "none" }))];
      },
      at: (x, view) => {
        const slack = (view.to - view.from) / (view.box.right - view.box.left) * 2;
        const clients = p.raster.filter(client => client.some(t => Math.abs(t - x) <= slack)).length;
        return { x, title: `${p.name}, about ${seconds(x)}`, rows: [["clients that act now", `${clients} of ${rows}`, p.colour]] };
      } });
  }
}

// ---- heat map ----------------------------------------------------------------------------------------------------
const stops = [0, 1, 2, 3, 4].map(i => `var(--heat${i})`);
const heatColour = share => { const s = Math.min(Math.max(share, 0), 1) * 4, i = Math.min(3, Math.floor(s)); return `color-mix(in oklab, ${stops[i + 1]} ${((s - i) * 100).toFixed(0)}%, ${stops[i]})`; };
if (page.heat) {
  const h = page.heat, node = section("heat", "Which base, which cap?", `Every cell is a simulation of ${h.policy} with another base and another cap. Blue is good. The ring is around the thriftiest of those that take hardly longer than the quickest. Fluid engine: expectations.`);
  let field = "drain";
  const panel = el("div", { class: "panel" }), scaleNode = el("span", {});
  node.append(el("div", { class: "bar" }, scaleNode, buttons("show", [["time / ideal", "drain"], ["wasted attempts", "wasted"]], field, value => { field = value; redraw(); })), panel);
  const middle = (list, i) => Math.sqrt(list[i] * list[i + 1]), edge = list => list.length < 2 ? [list[0] / 2, list[0] * 2] : [list[0] ** 2 / middle(list, 0), ...list.slice(1).map((_, i) => middle(list, i)), list[list.length - 1] ** 2 / middle(list, list.length - 2)];
  const [ex, ey] = [edge(h.base), edge(h.cap)];
  const span = () => { const all = h[field].flat().filter(v => v !== null).map(v => v + (field === "wasted" ? .01 : 0)); return [Math.min(...all), Math.max(...all)]; };
  plot(panel, { label: "Base and cap", height: 380, zoom: false, left: 66, top: 22, x: { label: "base", from: ex[0], to: ex[ex.length - 1], log: true, format: seconds },
    y: () => ({ from: ey[0], to: ey[ey.length - 1], log: true, format: seconds }),
    paint: view => {
      const [low, high] = span(), nodes = [];
      h[field].forEach((row, r) => row.forEach((v, c) => {
        if (v === null) {
          const [x, y] = [(view.x(ex[c]) + view.x(ex[c + 1])) / 2, (view.y(ey[r]) + view.y(ey[r + 1])) / 2];
          nodes.push(el("path", { d: `M${x - 2.5} ${y - 2.5}l5 5m0 -5l-5 5`, stroke: "var(--soft)", "stroke-opacity": .5, fill: "none" }));
          return;
        }
        const add = field === "wasted" ? .01 : 0, share = high > low ? Math.log((v + add) / low) / Math.log(high / low) : 0;
        nodes.push(el("rect", { class: "cell", x: view.x(ex[c]), y: view.y(ey[r + 1]), width: view.x(ex[c + 1]) - view.x(ex[c]) + .6, height: view.y(ey[r]) - view.y(ey[r + 1]) + .6, fill: heatColour(share) }));
      }));
      scaleNode.replaceChildren(`${number(low)}${field === "drain" ? "×" : ""} `, el("span", { class: "scale" }), ` ${number(high)}${field === "drain" ? "×" : ""}`, h[field].flat().includes(null) ? " · ✕ no result" : "");
      if (h.own && h.own.every((v, i) => v >= [ex, ey][i][0] && v <= [ex, ey][i].at(-1))) {
        const [x, y] = [view.x(h.own[0]), view.y(h.own[1])];
        nodes.push(el("path", { d: `M${x - 5} ${y - 5}l10 10m0 -10l-10 10`, stroke: "var(--ink)", "stroke-width": 2.5, fill: "none" }), el("text", { class: "strong halo", x: x + 10, y: y + 4 }, h.policy));
      }
      if (h.best) {
        const [r, c] = h.best, [x, y] = [(view.x(ex[c]) + view.x(ex[c + 1])) / 2, (view.y(ey[r]) + view.y(ey[r + 1])) / 2], right = x > view.width * .55;
        nodes.push(el("circle", { cx: x, cy: y, r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 2 }), el("text", { class: "strong halo", x: x + (right ? -12 : 12), y: y + 4, "text-anchor": right ? "end" : "start" }, `best: ${number(h.drain[r][c])}×, ${number(h.wasted[r][c])} wasted`));
      }
      return nodes;
    },
    over: view => [el("text", { x: view.box.left - 50, y: 12 }, "cap")],
    hover: (event, view) => {
      const box = event.currentTarget.getBoundingClientRect(), bx = view.back((event.clientX - box.left) / box.width * view.width), my = event.clientY - box.top;
      const c = ex.findIndex((v, i) => bx >= v && bx < ex[i + 1]), r = ey.findIndex((v, i) => i + 1 < ey.length && my <= view.y(v) && my > view.y(ey[i + 1]));
      if (c < 0 || r < 0 || c >= h.base.length || h.drain[r][c] === null) return hideTip();
      showTip(event, `base ${seconds(h.base[c])}, cap ${seconds(h.cap[r])}`, [["time / ideal", number(h.drain[r][c]) + "×", null], ["wasted a client", number(h.wasted[r][c]), null]]);
    } });
}

// ---- hysteresis --------------------------------------------------------------------------------------------------
if (page.hysteresis) {
  const node = section("hysteresis", "Does it come back the way it went?", "The load is raised slowly, then lowered again. Where the way back (dashed) lies below the way up (solid), the system stays broken at a load it could carry: that is metastability.");
  const pairNode = el("div", { class: "two" });
  node.append(pairNode);
  const sweeps = page.hysteresis.map(s => ({ ...s, p: policies.find(p => p.name === s.policy) || policies[0] }));
  const most = Math.max(...sweeps.flatMap(s => s.points.map(q => q.rho)), .1);
  for (const [field, name] of [["goodput", "successes / capacity"], ["load", "attempts / capacity"]]) {
    const panel = el("div", { class: "panel" }, el("header", {}, el("h3", {}, name)));
    pairNode.append(panel);
    const top = Math.max(...sweeps.flatMap(s => s.points.map(q => q[field])), 1) * 1.05;
    plot(panel, { label: name, height: 300, zoom: false, x: { label: "calls / capacity", from: 0, to: most, format: number }, y: () => ({ to: top, format: number }),
      paint: view => sweeps.filter(s => !hidden.has(s.policy)).flatMap(s => [true, false].map(rising => {
        const points = s.points.filter(q => q.rising === rising);
        return line(view, points.map(q => [q.rho, q[field]]), s.p.colour, { "stroke-dasharray": rising ? "" : "5 4" });
      })),
      at: x => {
        const rows = [], marks = [];
        let at = x;
        for (const s of sweeps.filter(s => !hidden.has(s.policy))) for (const rising of [true, false]) {
          const points = s.points.filter(q => q.rising === rising);
          if (!points.length) continue;
          const q = points[nearest(points.map(q => q.rho), x)];
          at = q.rho;
          rows.push([`${s.policy}, ${rising ? "going up" : "coming back"}`, number(q[field]), s.p.colour]);
          marks.push([q[field], s.p.colour]);
        }
        return { x: at, title: `${number(at)} of the capacity`, rows, marks };
      } });
    legend(panel, [...sweeps.map(s => toggle(s.p)), lineKey("going up", "var(--soft)"), lineKey("coming back", "var(--soft)", "dashKey")]);
  }
}

// ---- recovery ----------------------------------------------------------------------------------------------------
if (page.recovery) {
  const curves = page.recovery.map(c => ({ ...c, p: policies.find(p => p.name === c.policy) || policies[0] }));
  const { outage, patience } = curves[0];
  const slowest = Math.max(...curves.flatMap(c => c.time.map(t => t ?? Infinity)));
  const node = section("recovery", "How long does it take to heal?", isFinite(slowest) ? `After an outage of ${seconds(outage)}, by the load before it: at no load does it take longer than ${seconds(slowest)}.` : `After an outage of ${seconds(outage)}, by the load before it. Retries fill the server with work that nobody waits for. The closer the load is to the safe one (dashed), the longer it takes to work that off; beyond, it may never heal. A cross on top: not within ${seconds(patience)}.`);
  const panel = el("div", { class: "panel" }), to = 1;
  node.append(panel);
  const alive = () => curves.filter(c => !hidden.has(c.policy));
  const walls = () => [...new Set(alive().filter(c => c.time.includes(null)).map(c => c.threshold).filter(t => t && t < 1))];
  const top = isFinite(slowest) ? Math.max(slowest * 1.1, outage) : patience * 1.06;
  plot(panel, { label: "Time to heal by load", height: 320, top: 24, zoom: false, x: { label: "calls / capacity", from: 0, to, format: number },
    y: () => ({ to: top, format: seconds, ticks: linearTicks(0, Math.min(top, patience), 5, true) }),
    paint: view => [
      ...walls().map(t => el("path", { class: "wall", d: `M${view.x(t)} ${view.box.top}V${view.box.bottom}`, stroke: "var(--capacity)", "stroke-width": 1.5, "stroke-dasharray": "6 4", fill: "none" })),
      ...alive().flatMap(c => [
        line(view, c.rho.map((r, i) => [r, c.expected[i]]), c.p.colour, { "stroke-width": 6, "stroke-opacity": .18 }),
        line(view, c.rho.map((r, i) => [r, c.time[i]]), c.p.colour, { "stroke-dasharray": c.p.dash }),
        ...c.rho.map((r, i) => c.time[i] === null ? "" : el("circle", { cx: view.x(r), cy: view.y(c.time[i]), r: 3.5, fill: c.p.colour }))])],
    over: view => [
      ...walls().map(t => el("text", { class: "strong halo", x: view.x(t), y: view.box.top - 9, "text-anchor": "middle" }, Math.abs(1 / t - Math.round(1 / t)) < .01 ? `1/${Math.round(1 / t)}` : percent(t))),
      ...alive().flatMap(c => c.rho.map((r, i) => c.time[i] !== null ? "" : el("path", { class: "never", d: `M${view.x(r) - 4} ${view.y(patience) - 4}l8 8m0 -8l-8 8`, stroke: c.p.colour, "stroke-width": 2, fill: "none" })))],
    at: x => {
      const rows = [], marks = [];
      let at = x;
      for (const c of alive()) {
        const i = nearest(c.rho, x);
        if (Math.abs(c.rho[i] - x) > .06) continue;
        at = c.rho[i];
        rows.push([c.policy, (c.time[i] === null ? "not within " + seconds(patience) : seconds(c.time[i])) + (c.expected[i] === null ? "" : ` (by theory ${seconds(c.expected[i])})`), c.p.colour]);
        if (c.time[i] !== null) marks.push([c.time[i], c.p.colour]);
      }
      return rows.length ? { x: at, title: `${percent(at)} of the capacity`, rows, marks } : null;
    } });
  legend(panel, [...curves.map(c => toggle(c.p)), curves.some(c => c.expected.some(v => v !== null)) ? el("span", {}, el("i", { class: "bandKey" }), "by theory") : "", walls().length ? lineKey("the safe load", "var(--capacity)", "dashKey") : ""]);
}

// ---- layers ------------------------------------------------------------------------------------------------------
if (page.layers) {
  const l = page.layers, node = section("layers", "Layers multiply", `Attempts at the bottom for one call at the top, when an attempt fails with a probability of ${percent(l.failure)}. Rows are layers that retry, columns attempts a layer.`);
  const top = Math.max(...l.amplification.flat(), 1.0001);
  node.append(el("div", { class: "panel", style: "overflow-x:auto" }, el("table", { class: "matrix" },
    el("tr", {}, el("th", {}, "layers \\ attempts"), ...l.attempts.map(a => el("th", {}, String(a)))),
    ...l.depths.map((depth, r) => el("tr", {}, el("th", {}, String(depth)), ...l.amplification[r].map(v =>
      el("td", { style: `background:${heatColour(Math.log(v) / Math.log(top))}`, title: `${depth} layers` }, number(v) + "×")))))));
}

// ---- the numbers -------------------------------------------------------------------------------------------------
{
  const node = section("numbers", "The numbers", "What --json prints. Green is the best of a column, red the worst. ± is the standard deviation of a run, where there are several.");
  const cells = (r, isIdeal) => page.figures.map(f => {
    const v = r[f.name], sd = r[f.name + "_sd"];
    const others = records.map(o => o[f.name]).filter(o => o !== null && o !== undefined), [low, high] = [Math.min(...others), Math.max(...others)];
    let tone = "";
    // Who is quick because calls fail is not the best.
    const loses = /_s$|_over_ideal$|_ms$/.test(f.name) && (r.success_share ?? 1) < Math.max(...records.map(o => o.success_share ?? 1)) - .01;
    if (!isIdeal && others.length > 1 && high > low * 1.02 && v !== null && v !== undefined && !loses) tone = v === (f.best === "more" ? high : low) ? "bestof" : v === (f.best === "more" ? low : high) ? "worst" : "";
    return el("td", { class: tone, "data-figure": f.name, "data-value": v ?? null, title: v ?? "" }, format(f.name)(v), sd ? el("small", {}, "± " + format(f.name)(Number(sd.toPrecision(3)))) : "");
  });
  const head = el("tr", {}, el("th", {}, "policy"), ...page.figures.map(f => el("th", { title: f.meaning }, f.title)), el("th", { title: "Runs with different luck" }, "runs"), el("th", { title: "What did the arithmetic" }, "engine"));
  const body = records.map(r => el("tr", { "data-record": r.policy }, el("th", {}, key(policies.find(p => p.name === r.policy)?.colour), " " + r.policy), ...cells(r, false), el("td", {}, number(r.seeds)), el("td", {}, r.engine || "")));
  if (page.herd && ideal.figures) body.unshift(el("tr", { class: "ideal" }, el("th", {}, "ideal"), ...cells(ideal.figures, true), el("td", {}, ""), el("td", {}, "")));
  node.append(el("div", { class: "scroll" }, el("table", { class: "numbers", id: "table" }, el("thead", {}, head), el("tbody", {}, ...body))));
  if (page.checks.length) node.append(el("h3", { style: "margin-top:18px" }, "Against theory"), el("div", { class: "scroll" }, el("table", { class: "numbers" },
    el("thead", {}, el("tr", {}, el("th", {}, "what"), el("th", {}, "simulated"), el("th", {}, "in closed form"))),
    el("tbody", {}, ...page.checks.map(c => el("tr", {}, el("th", {}, c.name), el("td", {}, trim(c.measured.toPrecision(5))), el("td", {}, c.expected === null ? "–" : trim(c.expected.toPrecision(5)))))))));
  node.append(el("details", {}, el("summary", {}, "What the columns mean"), el("dl", {}, ...page.figures.flatMap(f => [el("dt", {}, f.title), el("dd", {}, f.meaning + ".")]))));
}
main.append(el("footer", {}, "Made by relent. The world is simulated; the policies are not: what decides each delay here is the code that decides it in production. The same command gives the same page."));

// ---- jumps -------------------------------------------------------------------------------------------------------
const jumps = [...main.querySelectorAll("section[id]")].map(s => el("a", { href: "#" + s.id }, s.querySelector("h2").textContent));
if (jumps.length > 2) cards.before(el("nav", { id: "jumps", "aria-label": "On this page" }, ...jumps));

// ---- the page itself ---------------------------------------------------------------------------------------------
const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme:dark)").matches ? "dark" : "light")) === "dark";
document.querySelector(".brand").append(el("button", { id: "theme", onclick: () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; } }, "light / dark"));
document.getElementById("copy").addEventListener("click", event => {
  const code = document.querySelector(".command code"), range = document.createRange();
  range.selectNodeContents(code);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  navigator.clipboard?.writeText(code.textContent).then(() => { event.target.textContent = "copied"; }, () => {});
});
redraw();
let wide = innerWidth;
addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; redraw(); } });
document.documentElement.dataset.ready = String(plots.length);

})();
