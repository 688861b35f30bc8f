// The Group screen's stage: puts what the server computed in its place. No arithmetic happens here.
const find = (id) => element.querySelector("#wb-" + id);
const seen = {};
const figures = { bars: null, ratios: null, means: null };
const CONFIG = { displayModeBar: false };
let newest = 0;

const isDark = () => document.querySelector(".dark") !== null;

function put(name, html) {
  const place = find(name);
  if (!place || (seen[name] === html && place.innerHTML !== "")) return;
  seen[name] = html;
  place.innerHTML = html;
  place.hidden = html === "";
}

function draw(name) {
  const figure = figures[name];
  const place = find(name);
  if (!place || !window.Plotly) return;
  if (!figure) return window.Plotly.purge(place);
  const layout = { ...figure.layout, template: props.templates[isDark() ? 1 : 0], autosize: true };
  delete layout.height;
  let data = figure.data;
  if (place.clientWidth / Math.max(data[0].x.length, 1) < 44) {
    data = data.map((trace) => (trace.text ? { ...trace, textangle: -90, textfont: { size: 11 } } : trace));
    layout.xaxis = { ...layout.xaxis, tickfont: { size: 10 } };
    layout.yaxis = { ...layout.yaxis, range: layout.yaxis.range.map((end) => 1.3 * end) };  // room for upright labels
  }
  if (place.clientWidth < 520 && layout.legend) {
    layout.legend = { ...layout.legend, x: 0, xanchor: "left", entrywidthmode: "fraction", entrywidth: 0.46 };
  }
  window.Plotly.react(place, data, layout, CONFIG);
  if (name === "bars" && !place.dataset.wired) wire(place);
}

function wire(place) {
  place.dataset.wired = "yes";
  place.addEventListener("click", (event) => {
    const axis = place._fullLayout && place._fullLayout.xaxis;
    if (!axis) return;
    const left = event.clientX - place.getBoundingClientRect().left - axis._offset;
    const number = Math.round(axis.p2d(left));
    if (left >= 0 && left <= axis._length && number >= 1) trigger("pick", { number });
  });
  place.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!direction) return;
    event.preventDefault();
    trigger("step_pick", { direction });
  });
}

function remember(query) {
  const search = new URLSearchParams(query);
  for (const [name, value] of new URLSearchParams(location.search)) if (name.startsWith("__")) search.set(name, value);
  const text = search.toString();
  history.replaceState(history.state, "", text ? "?" + text : location.pathname);
}

function save({ name, text }) {
  const type = name.endsWith(".json") ? "application/json" : "text/csv";
  const url = URL.createObjectURL(new Blob([text], { type: type + ";charset=utf-8" }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  URL.revokeObjectURL(url);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say("Copied " + what);
}

function say(words) {
  const toast = document.createElement("div");
  toast.className = "wb-toast";
  toast.setAttribute("role", "status");
  toast.textContent = words;
  document.body.append(toast);
  setTimeout(() => toast.remove(), 1600);
}

// The bars move first and are painted; the words around them follow in the next task.
function apply() {
  const reply = props.value;
  if (!reply || !reply.rev || reply.rev < newest) return;
  newest = reply.rev;
  if (!reply.bars || !figures.bars) return fill(reply);
  figures.bars = reply.bars;
  draw("bars");
  requestAnimationFrame(() => setTimeout(() => fill(reply)));
}

function fill(reply) {
  for (const [name, html] of Object.entries(reply.parts || {})) put(name, html);
  element.firstElementChild.classList.toggle("busy", !!seen.live);
  find("progress").hidden = !seen.live;  // the Cancel button stands outside what is redrawn, so that a press meets it
  if ("bars" in reply) {
    const first = !figures.bars;
    figures.bars = reply.bars;
    find("chart").classList.toggle("empty", !figures.bars);
    for (const name of ["selected", "why", "table"]) find(name).hidden = !figures.bars;
    if (first || !figures.bars) draw("bars");
  }
  if ("after" in reply) {
    Object.assign(figures, reply.after || { ratios: null, means: null });
    ["ratios", "means"].forEach(draw);
  }
  if (reply.query) remember(reply.query);
  if (reply.download) save(reply.download);
  if (reply.copy) copy(reply.copy, reply.copied);
  if (reply.scroll) find(reply.scroll).scrollIntoView({ block: "nearest", behavior: "smooth" });
  window.dispatchEvent(new CustomEvent("workbench:applied", { detail: reply.rev }));
}

const press = (id) => document.querySelector(`#${id}`)?.click();
const ACTS = {
  pick: (arg) => trigger("pick", { number: Number(arg) }),
  sort: (arg) => trigger("sort", { column: arg }),
  copy_csv: () => trigger("export", { kind: "copy_csv" }),
  csv: () => trigger("export", { kind: "csv" }),
  json: () => trigger("export", { kind: "json" }),
  link: () => copy(location.href, "the link"),
  graded: () => trigger("graded"),
  more_samples: () => trigger("more_samples"),
  next_task: () => press("wb-next"),
  press_sample: () => press("wb-sample"),
  press_cancel: () => press("wb-cancel"),
  close: (_, target) => target.closest(".note").remove(),
};

element.addEventListener("click", (event) => {
  const target = event.target.closest("[data-act]");
  if (!target || !ACTS[target.dataset.act] || !getSelection().isCollapsed) return;
  ACTS[target.dataset.act](target.dataset.arg, target);
});
element.addEventListener("change", (event) => {
  if (event.target.dataset.change === "reading") trigger("reading", { reading: event.target.value });
});
element.addEventListener("toggle", (event) => {
  const fold = event.target;
  if (fold.open && fold.dataset.act === "rendered" && !fold.querySelector("#wb-rendered").innerHTML) trigger("rendered");
}, true);

// One small tip for everything that carries data-tip, by pointer, by keyboard and by touch.
const tip = document.createElement("div");
tip.className = "wb-tip";
tip.hidden = true;
document.body.append(tip);
function showTip(event) {
  const target = event.target.closest?.("[data-tip], #wb-rail [data-testid='block-info']");
  const words = target && (target.dataset.tip || target.parentElement.querySelector(".info-text")?.textContent);
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const box = target.getBoundingClientRect();
  const width = Math.min(340, innerWidth - 16);
  tip.style.maxWidth = width + "px";
  tip.style.left = Math.max(8, Math.min(box.left, innerWidth - Math.min(tip.offsetWidth, width) - 8)) + "px";
  const above = box.top - tip.offsetHeight - 6;
  tip.style.top = (above > 4 ? above : box.bottom + 6) + "px";
  const rail = target.closest("#wb-rail");
  if (rail && rail.offsetWidth + width < innerWidth) {
    tip.style.left = rail.offsetWidth + 8 + "px";
    tip.style.top = box.top - 5 + "px";
  }
}
for (const name of ["pointerover", "focusin", "click"]) document.addEventListener(name, showTip);
document.addEventListener("scroll", () => (tip.hidden = true), true);

// Light and dark: the person's choice, else the system's.
const chosen = () => localStorage.getItem("workbench-theme");
const system = matchMedia("(prefers-color-scheme: dark)");
function paint() {
  const dark = chosen() ? chosen() === "dark" : system.matches;
  for (const place of [document.documentElement, document.body]) place.classList.toggle("dark", dark);
  document.documentElement.style.colorScheme = dark ? "dark" : "light";
  const button = document.querySelector("#wb-theme");
  if (button) {
    button.textContent = dark ? "☀" : "☾";
    button.setAttribute("aria-label", dark ? "switch to light" : "switch to dark");
  }
  ["bars", "ratios", "means"].forEach(draw);
}
system.addEventListener("change", paint);
document.addEventListener("click", (event) => {
  if (event.target.closest?.("#wb-theme")) {
    localStorage.setItem("workbench-theme", isDark() ? "light" : "dark");
    paint();
  }
  if (event.target.closest?.("#wb-drawer")) {
    const open = document.querySelector("#wb-rail").classList.toggle("wb-open");
    document.querySelector("#wb-drawer").setAttribute("aria-expanded", String(open));
  }
});

const library = document.createElement("script");
library.src = props.plotly;
library.onload = () => ["bars", "ratios", "means"].forEach(draw);
document.head.append(library);
paint();
watch("value", apply);
// What came with the page is drawn at once, unless a link asks for something else, which the server sends next.
const linked = [...new URLSearchParams(location.search).keys()].some((name) => !name.startsWith("__"));
if (!linked || !props.value.opening) apply();
let width = 0;
new ResizeObserver(() => {
  if (element.clientWidth === width) return;
  width = element.clientWidth;
  ["bars", "ratios", "means"].forEach(draw);
}).observe(element);
