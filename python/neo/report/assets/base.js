"use strict";
// What every part of the page uses: the data, elements, text that fits, numbers with units, and who is selected.

const data = JSON.parse(document.getElementById("data").textContent);

// An element with attributes and children. Texts become text nodes: a name from a model is never markup.
function element(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const byId = (id) => document.getElementById(id);

// Line breaks and other controls as visible characters, for text on one line.
function oneLine(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\u2423");
}

const fitText = (() => {
  const context = document.createElement("canvas").getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;
  const widths = new Map();
  const width = (text, font) => {
    const key = font + "\n" + text;
    let found = widths.get(key);
    if (found === undefined) {
      context.font = `${font} ${family}`;
      found = context.measureText(text).width * 1.02;
      if (widths.size < 50000) widths.set(key, found);
    }
    return found;
  };
  // The text in one line no wider than `room`; what is too much is left out in the middle.
  const fit = (whole, room, font = "12px") => {
    let text = oneLine(whole.length > 400 ? whole.slice(0, 200) + "\u2026" + whole.slice(-199) : whole);
    if (width(text, font) <= room) return text;
    let low = 0;
    let high = text.length;
    const cut = (kept) => text.slice(0, Math.ceil(kept * 0.4)) + "\u2026" + text.slice(text.length - Math.floor(kept * 0.6));
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (width(cut(middle), font) <= room) low = middle;
      else high = middle - 1;
    }
    return low > 0 ? cut(low) : "";
  };
  fit.width = width;
  return fit;
})();

function significant(value, digits = 3) {
  if (value === 0) return "0";
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  const text = value.toFixed(Math.min(decimals, 6));
  const [whole, part] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
  return part ? `${grouped}.${part}` : grouped;
}

function microseconds(us) {
  if (us === null || us === undefined) return "\u2013";
  const size = Math.abs(us);
  if (size >= 1e6) return significant(us / 1e6) + "\u00a0s";
  if (size >= 1e3) return significant(us / 1e3) + "\u00a0ms";
  if (size >= 0.1 || size === 0) return significant(us) + "\u00a0\u00b5s";
  return significant(us * 1e3, 2) + "\u00a0ns";
}

function byteCount(bytes) {
  if (bytes === null || bytes === undefined) return "unknown";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) {
    bytes /= 1024;
    ++unit;
  }
  return significant(bytes) + "\u00a0" + units[unit];
}

function count(value, unit) {
  const prefixes = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, prefix] of prefixes) if (value >= size) return significant(value / size) + "\u00a0" + prefix + unit;
  return significant(value) + "\u00a0" + unit;
}

const percent = (part) => (part >= 0.0995 ? (100 * part).toFixed(0) : (100 * part).toFixed(1)) + "\u00a0%";

// "cpu:float32:NCHW16c" and "cpu:float32/direct_nchwc{...}" without what is everywhere the same.
const shortSchema = (schema) => schema.replace(/^cpu:/, "");
const shortRoutine = (routine) => routine.replace(/^cpu[:/]/, "").replace(/\{.*$/s, "");

const FAMILIES = [
  ["convolution", "convolution", /^(Conv|ConvTranspose|ConvInteger|QLinearConv|DeformConv)$/],
  ["matrix", "matrix product", /(MatMul|Gemm|Einsum|Attention)/],
  ["recurrent", "recurrent", /^(LSTM|GRU|RNN)$/],
  ["reduction", "pooling, reduction, normalization", /(Pool|^Reduce|Norm|Softmax|LRN|ArgM|CumSum|TopK|Hardmax)/],
  ["conversion", "conversion of a layout or type", /^(neo\.Adapt|Cast|CastLike|QuantizeLinear|DequantizeLinear|DynamicQuantizeLinear)$/],
  ["control", "control flow", /^(If|Loop|Scan|Sequence.*|Optional.*|SplitToSequence|ConcatFromSequence)$/],
  ["movement", "moves data", /^(Reshape|Flatten|Squeeze|Unsqueeze|Transpose|Concat|Split|Slice|Pad|Gather.*|Scatter.*|Expand|Tile|DepthToSpace|SpaceToDepth|Identity|Resize|Upsample|GridSample|Shape|Size|neo\.Dims|ConstantOfShape|Range|NonZero|OneHot|Compress|Unique|ReverseSequence|NonMaxSuppression|RoiAlign|input|output|argument|result)$/],
  ["elementwise", "elementwise", /./],
];

function familyOf(op) {
  return FAMILIES.find(([, , pattern]) => pattern.test(op))[0];
}

// A group is of the family of the member that does the most: the first in the order above.
const familyRank = new Map(FAMILIES.map(([family], i) => [family, i]));

function familyOfNode(node) {
  const families = node.members.length ? node.members.map((member) => familyOf(member.op)) : [familyOf(node.op)];
  return families.reduce((a, b) => (familyRank.get(b) < familyRank.get(a) ? b : a));
}

function familyOfStep(id) {
  return nodeOfStep.has(id) ? familyOfNode(data.graph.nodes[nodeOfStep.get(id)]) : familyOf(data.steps[id].op);
}

// The longest of: the name, its last parts, what it computes; nothing where none has room.
function shortLabel(name, op, room, font = "11px") {
  const parts = oneLine(name.slice(-300)).split("/").filter(Boolean);
  const texts = [name.length > 300 ? "" : oneLine(name), ...parts.map((_, i) => parts.slice(i + 1).join("/")), op];
  return texts.find((text) => text && fitText.width(text, font) <= room) || "";
}

// The steps of a node, and the node of a step.
const nodeOfStep = new Map();
for (const node of data.graph.nodes) for (const step of node.steps) nodeOfStep.set(step, node.id);
const isMeasured = data.events.length > 0;
const stepTime = (step) => (isMeasured ? step.time_us || 0 : step.estimate_us);
const totalTime = data.total_us || data.estimate_us || 1;

function nodeTime(node) {
  const steps = node.steps.map((step) => data.steps[step]).filter((step) => !step.control);
  return steps.length ? steps.reduce((sum, step) => sum + stepTime(step), 0) : null;
}

const selection = {
  node: -1,
  listeners: [],
  select(node, from) {
    this.node = node;
    for (const listener of this.listeners) listener(node, from);
  },
  listen(listener) {
    this.listeners.push(listener);
  },
};

const tip = byId("tip");

function showTip(event, text) {
  tip.textContent = text.length > 900 ? text.slice(0, 900) + "\u2026" : text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 8);
  const y = event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18;
  tip.style.left = Math.max(4, x) + "px";
  tip.style.top = Math.max(4, y) + "px";
}

function hideTip() {
  tip.hidden = true;
}

// Shows `text()` while the pointer is over an element.
function withTip(node, text) {
  node.addEventListener("pointermove", (event) => {
    event.stopPropagation();
    showTip(event, text());
  });
  node.addEventListener("pointerleave", hideTip);
  return node;
}

function button(text, label, action) {
  return element("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
}

// Calls `draw(width)` now and whenever the width of an element changes.
function onWidth(stage, draw) {
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(stage.clientWidth);
    if (now > 0 && now !== width) draw((width = now));
  }).observe(stage);
}

// Round numbers from `low` to `high`, about `wanted` of them.
function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high * (1 + 1e-12); ++i) found.push(i * step);
  return found;
}
