"use strict";
// Who holds which bytes of the arena from which step to which, above what is held all the time.

const memory = (() => {
  const stage = byId("memory-stage");
  const held = data.memory;
  const HEIGHT = 380;
  const EDGE = { left: 84, right: 16, top: 14, bottom: 48 };
  const steps = held.live_bytes.length;
  let svg;

  const PARTS = [
    ["packed_bytes", "weights, packed for their routines", "convolution"],
    ["constant_bytes", "other constants", "reduction"],
    ["arena_bytes", "arena: values between steps", "elementwise"],
    ["scratch_bytes", "scratch of single steps", "matrix"],
    ["result_bytes", "results", "recurrent"],
    ["owned_bytes", "values whose size a step finds out", "control"],
  ];

  function totals() {
    const parts = PARTS.filter(([key]) => held[key] > 0);
    const all = parts.reduce((sum, [key]) => sum + held[key], 0);
    const bar = element("div", { class: "share", role: "img", "aria-label": `What the module and a call hold: ${byteCount(all)}` });
    for (const [key, , family] of parts) {
      const piece = element("span", { class: `c-${family}`, title: `${key}: ${byteCount(held[key])}` });
      piece.style.flexGrow = held[key] / Math.max(1, all);
      bar.append(piece);
    }
    const keys = parts.map(([key, text, family]) => element("li", {}, element("span", { class: `swatch c-${family}` }), `${text}: ${byteCount(held[key])}`));
    byId("memory-totals").replaceChildren(element("p", { class: "hint" }, `The module and one call hold ${byteCount(all)}.`), bar, element("ul", { class: "keys" }, ...keys));
  }

  function draw(width) {
    build(svg, { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` }, []);
    const top = Math.max(1, held.arena_bytes);
    const x = (step) => EDGE.left + (step / steps) * (width - EDGE.left - EDGE.right);
    const y = (bytes) => HEIGHT - EDGE.bottom - (bytes / top) * (HEIGHT - EDGE.top - EDGE.bottom);
    const axis = shape("g", { class: "axis" });
    const unit = 1024 ** Math.max(0, Math.floor(Math.log(top) / Math.log(1024)));
    for (const at of ticks(0, top / unit, 6)) {
      axis.append(shape("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(at * unit), y2: y(at * unit) }));
      axis.append(shape("text", { x: EDGE.left - 8, y: y(at * unit) + 4, "text-anchor": "end" }, byteCount(at * unit)));
    }
    for (const at of ticks(0, steps, Math.min(12, steps)).filter(Number.isInteger)) {
      axis.append(shape("text", { x: x(at), y: HEIGHT - EDGE.bottom + 18, "text-anchor": "middle" }, String(at)));
    }
    axis.append(shape("text", { x: (EDGE.left + width) / 2, y: HEIGHT - 10, "text-anchor": "middle" }, "step, in the order of the plan"));
    const boxes = shape("g");
    for (const buffer of held.buffers) {
      const node = nodeOfStep.get(buffer.writer);
      const op = data.steps[buffer.writer].op;
      const [left, right] = [x(buffer.first), x(buffer.last + 1)];
      const [up, down] = [y(buffer.offset + buffer.bytes), y(buffer.offset)];
      const box = shape("rect", { class: `buffer c-${familyOfStep(buffer.writer)}`, x: left, y: up, width: Math.max(1, right - left), height: Math.max(0.8, down - up) });
      box.dataset.node = node === undefined ? -1 : node;
      box.addEventListener("click", () => node !== undefined && selection.select(node, "memory"));
      withTip(box, () => [buffer.name, `${buffer.type}  ${buffer.layout}`, `${byteCount(buffer.bytes)} at ${byteCount(buffer.offset)}`, `steps ${buffer.first} to ${buffer.last}, written by ${data.steps[buffer.writer].node || op}`].join("\n"));
      boxes.append(box);
      const text = right - left > 24 && down - up > 15 ? shortLabel(buffer.name, op, right - left - 8) : "";
      if (text) {
        const label = shape("text", { class: "bar-label", x: left + 4, y: up + 12 }, text);
        label.style.fill = "var(--on-family)";
        boxes.append(label);
      }
    }
    let path = "";
    // Of many steps on few pixels, the most that any holds.
    const stride = Math.max(1, Math.ceil((3 * steps) / width));
    for (let step = 0; step < steps; step += stride) {
      const most = Math.max(...held.live_bytes.slice(step, step + stride));
      path += `${step ? "L" : "M"}${x(step)},${y(most)}H${x(Math.min(steps, step + stride))}`;
    }
    svg.replaceChildren(axis, boxes, shape("path", { class: "held", d: path }));
  }

  function start() {
    totals();
    if (!held.buffers.length) {
      stage.remove();
      byId("memory-hint").textContent = "No step leaves a value in planned memory.";
      return;
    }
    svg = shape("svg", { class: "picture", role: "img", "aria-label": "Buffers of the arena over the steps" });
    stage.append(svg);
    const peak = held.live_bytes.indexOf(Math.max(...held.live_bytes));
    const holders = held.buffers.filter((buffer) => buffer.first <= peak && peak <= buffer.last).sort((a, b) => b.bytes - a.bytes);
    const named = holders.slice(0, 4).map((buffer) => `${oneLine(buffer.name).slice(0, 80)} (${byteCount(buffer.bytes)})`);
    const more = holders.length > 4 ? ` and ${holders.length - 4} more` : "";
    byId("memory-hint").textContent =
      `A box is a value: its height its bytes, from the step that writes it to the last that reads it, in the colour of the step that writes it. The line ` +
      `is what is held; at most ${byteCount(held.live_bytes[peak])} at step ${peak} (${oneLine(data.steps[peak].node || data.steps[peak].op).slice(0, 80)}), by ${named.join(", ")}${more}. ` +
      `Without sharing, all values would take ${byteCount(held.unshared_bytes)}; the arena is ${byteCount(held.arena_bytes)}.` +
      (held.unknown_sizes ? ` The sizes of ${held.unknown_sizes} values are not known here.` : "");
    onWidth(stage, draw);
    selection.listen((node) => {
      for (const box of svg.querySelectorAll(".buffer")) box.classList.toggle("picked", node >= 0 && Number(box.dataset.node) === node);
    });
  }

  return { start };
})();
