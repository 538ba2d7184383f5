"use strict";
// The graph: units (nodes that run), blocks that fold many of them into one, bodies of control flow as frames inside.

const graphView = (() => {
  const { nodes, edges, blocks } = data.graph;
  const stage = byId("graph-stage");
  const WIDTH = 232;
  const PAD = 16;
  const open = new Set();
  const shut = new Set(); // control nodes whose bodies are hidden
  const folded = new Set(); // bodies shown as their title only: "id body"
  const groupKey = (parent, body) => `${parent}/${body}`;
  const groups = new Map();
  const groupOf = (parent, body) => {
    const key = groupKey(parent, body);
    if (!groups.has(key)) groups.set(key, { nodes: [], edges: [] });
    return groups.get(key);
  };
  for (const node of nodes) groupOf(node.parent, node.body).nodes.push(node);
  for (const edge of edges) groupOf(nodes[edge.to].parent, nodes[edge.to].body).edges.push(edge);
  const bodiesOf = new Map();
  for (const node of nodes) {
    if (node.parent < 0) continue;
    if (!bodiesOf.has(node.parent)) bodiesOf.set(node.parent, []);
    if (!bodiesOf.get(node.parent).includes(node.body)) bodiesOf.get(node.parent).push(node.body);
  }
  // Control flow takes the time of what is inside.
  const times = nodes.map((node) => nodeTime(node));
  for (let i = nodes.length - 1; i >= 0; --i) {
    if (nodes[i].parent >= 0 && times[i] !== null) times[nodes[i].parent] = (times[nodes[i].parent] || 0) + times[i];
  }
  // A body that the measured call did not enter is folded away.
  for (const [id, bodies] of bodiesOf) {
    for (const body of bodies) {
      const inside = nodes.filter((node) => node.parent === id && node.body === body);
      const ran = inside.some((node) => node.steps.some((step) => data.steps[step].calls > 0));
      if (isMeasured && !ran && bodies.length > 1) folded.add(`${id} ${body}`);
    }
  }
  const sumTimes = (ids) => ids.reduce((sum, id) => sum + (times[id] || 0), 0);
  const longest = () => Math.max(1e-9, ...scene.units.filter((unit) => unit.kind !== "frame").map((unit) => unit.time || 0));
  let scene = null;
  let view = { x: 0, y: 0, k: 1 };
  let svg, world, minimap, height;
  let matches = [];

  // ---- Sizes and places, from the inside out.

  function unitOfNode(node) {
    const unit = { kind: "node", key: `n${node.id}`, node, time: times[node.id], width: WIDTH, height: 62, children: [] };
    if (["input", "output", "argument", "result"].includes(node.kind)) Object.assign(unit, { width: 190, height: 42 });
    else if (node.kind === "conversion") Object.assign(unit, { width: 210, height: 42 });
    else if (node.kind === "view") unit.height = 46;
    if (node.members.length > 1) unit.height += 8 + 15 * Math.min(node.members.length, 5);
    const bodies = bodiesOf.get(node.id);
    if (!bodies || shut.has(node.id)) return unit;
    let x = PAD;
    let tallest = 0;
    for (const body of bodies) {
      const inner = folded.has(`${node.id} ${body}`) ? { width: 150, height: 30, units: [], lines: [], ports: {}, note: "did not run: open" } : placeGroup(groupOf(node.id, body));
      unit.children.push({ kind: "body", title: body, x, y: 44, width: Math.max(inner.width + 2 * PAD, 120), height: inner.height + 24 + PAD, inner });
      x += Math.max(inner.width + 2 * PAD, 120) + PAD;
      tallest = Math.max(tallest, inner.height + 24 + PAD);
    }
    for (const child of unit.children) child.height = tallest;
    return Object.assign(unit, { kind: "frame", width: Math.max(x, WIDTH), height: 44 + tallest + PAD });
  }

  function unitOfBlock(block) {
    const time = sumTimes(block.nodes);
    const unit = { kind: "block", key: `b${block.id}`, block, time, width: WIDTH, height: 66, children: [], inX: {}, outX: {} };
    if (!open.has(block.id)) return unit;
    const inside = new Set(block.nodes);
    const group = groupOf(block.parent, block.body);
    const own = group.edges.filter((edge) => inside.has(edge.from) || inside.has(edge.to));
    const inner = placeUnits(block.nodes.map((id) => nodes[id]), own, [], inside);
    unit.children.push({ kind: "inside", x: PAD, y: 40, width: inner.width, height: inner.height, inner });
    unit.width = Math.max(inner.width + 2 * PAD, WIDTH);
    unit.height = inner.height + 40 + PAD;
    unit.children[0].x = (unit.width - inner.width) / 2;
    const middle = unit.width / 2 - unit.children[0].x;
    for (const [join, x] of Object.entries(inner.ports.in)) unit.inX[join] = x - middle;
    for (const [join, x] of Object.entries(inner.ports.out)) unit.outX[join] = x - middle;
    return Object.assign(unit, { kind: "frame" });
  }

  const joinOf = (edge) => `${edge.from} ${edge.schema} ${edge.value}`;

  function placeGroup(group) {
    const folded = blocks.filter((block) => group.nodes.length && block.parent === group.nodes[0].parent && block.body === group.nodes[0].body);
    return placeUnits(group.nodes, group.edges, folded, null);
  }

  // Units of nodes, some of them folded into blocks. `inside`: these are the nodes of one block, and edges that cross
  // its border end at ports.
  function placeUnits(members, own, folded, inside) {
    const units = [];
    const keys = new Map();
    const seen = new Set();
    for (const node of members) {
      if (inside || node.block < 0 || !folded.length) {
        units.push(unitOfNode(node));
        keys.set(node.id, `n${node.id}`);
      } else {
        keys.set(node.id, `b${node.block}`);
        if (!seen.has(node.block)) units.push(unitOfBlock(blocks[node.block]));
        seen.add(node.block);
      }
    }
    const entry = [];
    const exit = [];
    const ports = { in: {}, out: {} };
    const lines = new Map();
    const byKey = new Map(units.map((unit) => [unit.key, unit]));
    const port = (list, key, edge) => {
      if (!byKey.has(key)) {
        const made = { kind: "port", key, edge, width: 12, height: 6, children: [] };
        list.push(made);
        byKey.set(key, made);
      }
      return key;
    };
    for (const edge of own) {
      const join = joinOf(edge);
      const from = inside && !inside.has(edge.from) ? port(entry, `in ${join}`, edge) : keys.get(edge.from);
      const to = inside && !inside.has(edge.to) ? port(exit, `out ${join}`, edge) : keys.get(edge.to);
      if (from === to || from === undefined || to === undefined) continue;
      const line = { from, to, join, edges: [], fromX: (byKey.get(from).outX || {})[join] || 0, toX: (byKey.get(to).inX || {})[join] || 0 };
      const key = `${from}>${to} ${join}`;
      if (!lines.has(key)) lines.set(key, line);
      lines.get(key).edges.push(edge);
    }
    const all = [...entry, ...units, ...exit];
    const drawn = [...lines.values()];
    if (!all.length) return { width: 60, height: 10, units: [], lines: [], ports };
    const found = layered(all, drawn);
    drawn.forEach((line, i) => (line.points = found.points[i]));
    for (const made of entry) ports.in[joinOf(made.edge)] = made.x + made.width / 2;
    for (const made of exit) ports.out[joinOf(made.edge)] = made.x + made.width / 2;
    return { width: found.width, height: found.height, units: all, lines: drawn, ports };
  }

  // ---- Drawing.

  function render() {
    const inner = placeGroup(groupOf(-1, ""));
    scene = { inner, width: inner.width, height: inner.height, units: [] };
    const wires = shape("g");
    const boxes = shape("g");
    collect(inner, 0, 0);
    const scale = longest();
    // Frames lie below the wires, everything else above.
    const frames = shape("g");
    for (const unit of scene.units) (unit.kind === "frame" ? frames : boxes).append(drawUnit(unit, scale));
    drawLines(inner, 0, 0, wires);
    world.replaceChildren(frames, wires, boxes);
    svg.dataset.units = scene.units.filter((unit) => unit.node).length;
    svg.dataset.blocks = scene.units.filter((unit) => unit.block).length;
    const first = scene.units.find((unit) => unit.kind !== "port");
    if (first) first.element.setAttribute("tabindex", "0");
    drawMinimap();
    markSelection();
    markMatches();
    look();
  }

  function collect(inner, x, y) {
    for (const unit of inner.units) {
      Object.assign(unit, { left: x + unit.x, top: y + unit.y });
      scene.units.push(unit);
      for (const child of unit.children) collect(child.inner, unit.left + child.x + bodyX(child), unit.top + child.y + bodyY(child));
    }
  }

  const bodyX = (child) => (child.kind === "body" ? (child.width - child.inner.width) / 2 : 0);
  const bodyY = (child) => (child.kind === "body" ? 24 : 0);

  function drawLines(inner, x, y, wires) {
    const labelled = new Set();
    const labels = [];
    for (const line of inner.lines) {
      const points = line.points.map((p) => ({ x: p.x + x, top: p.top + y, bottom: p.bottom + y, rankBottom: p.rankBottom + y }));
      const edge = line.edges[0];
      const wire = shape("path", { class: "wire", d: pathOf(points) });
      wire.dataset.ends = [...new Set(line.edges.flatMap((one) => [one.from, one.to]))].join(" ");
      withTip(wire, () => `${edge.value}\n${edge.type}\n${edge.schema}`);
      const end = points[points.length - 1];
      wires.append(wire);
      if (!line.to.startsWith("out ")) wires.append(shape("path", { class: "arrow", d: `M${end.x - 4},${end.top - 7}h8l-4,7z` }));
      if (edge.changes && !line.from.startsWith("in ") && !labelled.has(line.from + line.join)) {
        labelled.add(line.from + line.join);
        const text = fitText(shortSchema(edge.schema), WIDTH - 20, "11px");
        labels.push(shape("text", { class: "wire-label near-text", x: points[0].x, y: points[0].bottom + 15, "text-anchor": "middle" }, text));
      }
    }
    wires.append(...labels);
    for (const unit of inner.units) {
      for (const child of unit.children) drawLines(child.inner, unit.left + child.x + bodyX(child), unit.top + child.y + bodyY(child), wires);
    }
  }

  function drawUnit(unit, scale) {
    const { width, height } = unit;
    const at = { transform: `translate(${unit.left},${unit.top})` };
    if (unit.kind === "port") return (unit.element = shape("g", at, shape("circle", { class: "port", cx: 6, cy: 3, r: 3 })));
    const kind = unit.node ? unit.node.kind : "block";
    const fused = unit.node && unit.node.members.length > 1;
    const group = shape("g", { ...at, class: `unit ${kind}${fused ? " fused" : ""}${unit.kind === "frame" ? " frame" : ""}`, tabindex: "-1", role: "button" });
    unit.element = group;
    if (unit.node) group.dataset.node = unit.node.id;
    else group.dataset.block = unit.block.id;
    if (fused) group.append(shape("rect", { class: "shade", x: 4, y: 4, width, height, rx: 6 }));
    const round = ["input", "output", "argument", "result", "conversion"].includes(kind) ? height / 2 : 6;
    group.append(shape("rect", { class: "box", width, height, rx: unit.kind === "frame" ? 10 : round }));
    if (unit.block) drawBlock(group, unit, scale);
    else if (unit.kind === "frame") drawFrame(group, unit);
    else if (round !== 6) drawPill(group, unit);
    else drawNode(group, unit, scale);
    group.addEventListener("click", () => activate(unit, group));
    group.addEventListener("focus", () => world.querySelectorAll("[tabindex='0']").forEach((other) => other !== group && other.setAttribute("tabindex", "-1")) || group.setAttribute("tabindex", "0"));
    withTip(group, () => tipOf(unit));
    group.setAttribute("aria-label", oneLine(tipOf(unit)).slice(0, 300));
    return group;
  }

  function write(group, x, y, text, room, { classes = "", font = "12px", anchor } = {}) {
    group.append(shape("text", { x, y, class: `near-text ${classes}`, "text-anchor": anchor }, fitText(text, room, font)));
  }

  function writeFar(group, unit, text) {
    const size = Math.min(26, unit.height * 0.45);
    const fitted = fitText(text, unit.width - 24, `${size}px`);
    group.append(shape("text", { class: "far-text", x: unit.width / 2 + 3, y: unit.height / 2 + size * 0.35, "text-anchor": "middle", style: null }, fitted));
    group.lastChild.style.fontSize = `${size}px`;
  }

  function heat(group, unit, scale) {
    if (!unit.time) return;
    group.append(shape("rect", { class: "heat", x: 6, y: unit.height - 5, width: Math.max(1, ((unit.width - 12) * unit.time) / scale), height: 4 }));
  }

  function drawNode(group, unit, scale) {
    const { node, width, height } = unit;
    const strip = shape("path", { class: `c-${familyOfNode(node)}`, d: `M6,0H6a6,6 0 0 0 -6,6V${height - 6}a6,6 0 0 0 6,6z` });
    group.append(strip);
    write(group, 14, 17, node.name || "(unnamed)", width - 24, { classes: "strong", font: "600 12px" });
    write(group, 14, 33, node.label, width - 24);
    if (node.members.length > 1) {
      const shown = node.members.length > 5 ? node.members.slice(0, 4) : node.members;
      const rows = Math.min(node.members.length, 5);
      group.append(shape("rect", { class: "group", x: 12, y: 40, width: width - 22, height: 15 * rows + 5, rx: 4 }));
      shown.forEach((member, i) => {
        group.append(shape("rect", { class: `c-${familyOf(member.op)}`, x: 18, y: 46 + 15 * i, width: 8, height: 8, rx: 2 }));
        write(group, 31, 54 + 15 * i, `${member.label}  ${member.name}`, width - 50, { classes: "small", font: "11px" });
      });
      if (shown.length < node.members.length) write(group, 31, 54 + 15 * 4, `and ${node.members.length - 4} more`, width - 50, { classes: "small quiet", font: "11px" });
    }
    if (node.kind !== "view") {
      const time = unit.time === null ? "" : microseconds(unit.time);
      const room = fitText.width(time, "11px");
      write(group, 14, height - 12, shortRoutine(node.routine) || "no step", width - 34 - room, { classes: "small quiet", font: "11px" });
      write(group, width - 10, height - 12, time, room + 4, { classes: "small", font: "11px", anchor: "end" });
      heat(group, unit, scale);
    } else {
      write(group, width - 10, 33, "no step: a view", 100, { classes: "small quiet", font: "11px", anchor: "end" });
    }
    writeFar(group, unit, node.label);
  }

  function drawPill(group, unit) {
    const { node, width } = unit;
    if (node.kind === "conversion") {
      const time = unit.time === null ? "" : "  " + microseconds(unit.time);
      write(group, width / 2, 17, `conversion${time}`, width - 30, { classes: "small", font: "11px", anchor: "middle" });
      write(group, width / 2, 33, conversionText(node), width - 24, { classes: "strong", font: "600 12px", anchor: "middle" });
      writeFar(group, unit, "conversion");
    } else {
      write(group, width / 2, 17, `${node.kind} ${node.name}`, width - 30, { classes: "strong", font: "600 12px", anchor: "middle" });
      write(group, width / 2, 33, node.type, width - 30, { classes: "small quiet", font: "11px", anchor: "middle" });
      writeFar(group, unit, node.kind);
    }
  }

  function conversionText(node) {
    const [from, to] = [node.from.split(":"), node.schema.split(":")];
    const differing = from.map((part, i) => i).filter((i) => from[i] !== to[i]);
    return `${differing.map((i) => from[i]).join(":")} \u2192 ${differing.map((i) => to[i]).join(":")}`;
  }

  function drawBlock(group, unit, scale) {
    const { block, width, height } = unit;
    const isOpen = unit.kind === "frame";
    group.setAttribute("aria-expanded", isOpen);
    const marker = isOpen ? "\u25be " : "\u25b8 ";
    const time = `${microseconds(unit.time)} \u00b7 ${percent(unit.time / totalTime)}`;
    if (isOpen) {
      write(group, 14, 18, marker + block.name, width - 28, { classes: "strong", font: "600 12px" });
      write(group, 14, 33, time, width - 28, { classes: "small quiet", font: "11px" });
      return;
    }
    const byFamily = new Map();
    for (const id of block.nodes) {
      const family = familyOfNode(nodes[id]);
      byFamily.set(family, (byFamily.get(family) || 0) + (times[id] || 0));
    }
    let y = 4;
    for (const [family, spent] of [...byFamily].sort((a, b) => b[1] - a[1])) {
      const part = unit.time ? ((height - 8) * spent) / unit.time : 0;
      group.append(shape("rect", { class: `c-${family}`, x: 3, y, width: 6, height: part }));
      y += part;
    }
    const ops = new Map();
    for (const id of block.nodes) ops.set(nodes[id].label, (ops.get(nodes[id].label) || 0) + 1);
    const listed = [...ops].sort((a, b) => b[1] - a[1]).map(([op, n]) => `${n} ${op}`).join(", ");
    write(group, 16, 17, marker + block.name, width - 26, { classes: "strong", font: "600 12px" });
    write(group, 16, 34, listed, width - 26);
    write(group, 16, height - 13, `${block.nodes.length} nodes`, 90, { classes: "small quiet", font: "11px" });
    write(group, width - 10, height - 13, time, width - 110, { classes: "small", font: "11px", anchor: "end" });
    heat(group, unit, scale);
    writeFar(group, unit, listed);
  }

  function drawFrame(group, unit) {
    const { node, width } = unit;
    write(group, 14, 18, `${node.op} ${node.name}`, width - 28, { classes: "strong", font: "600 12px" });
    write(group, 14, 34, `${unit.time === null ? "" : microseconds(unit.time)} inside`, width - 28, { classes: "small quiet", font: "11px" });
    for (const child of unit.children) {
      group.append(shape("rect", { class: "group", x: child.x, y: child.y, width: child.width, height: child.height, rx: 8 }));
      write(group, child.x + 12, child.y + 17, child.title, child.width - 24, { classes: "quiet" });
      if (!child.inner.note) continue;
      const opener = shape("g", { class: "opener", role: "button", tabindex: "-1", "aria-label": `Open ${child.title}` });
      opener.append(shape("text", { x: child.x + 12, y: child.y + 42, class: "near-text" }, `\u25b8 ${child.inner.note}`));
      opener.addEventListener("click", (event) => {
        event.stopPropagation();
        folded.delete(`${node.id} ${child.title}`);
        render();
      });
      group.append(opener);
    }
  }

  function tipOf(unit) {
    if (unit.block) return `${unit.block.name}\n${unit.block.nodes.length} nodes, ${microseconds(unit.time)}\nOpen or close with a click`;
    const { node } = unit;
    const parts = [node.name || "(unnamed)", node.kind === "conversion" ? `conversion ${conversionText(node)}` : node.label, node.routine];
    if (unit.time !== null) parts.push(`${microseconds(unit.time)}, ${percent(unit.time / totalTime)} of the call`);
    if (node.schema) parts.push(`gives ${shortSchema(node.schema)}`);
    return parts.filter(Boolean).join("\n");
  }

  // ---- Looking around.

  function look() {
    const [wide, tall] = [scene.width * view.k, scene.height * view.k];
    const isWhole = view.x >= -1 && view.y >= -1 && view.x + wide <= Number(svg.getAttribute("width")) + 1 && view.y + tall <= height + 1;
    minimap.clip.style.display = isWhole ? "none" : "";
    world.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.k})`);
    svg.classList.toggle("far", view.k < 0.5);
    const { k, x, y } = view;
    if (minimap.window) {
      const s = minimap.scale;
      const width = Number(svg.getAttribute("width"));
      const clamp = (value, most) => Math.min(Math.max(value, -4), most * s + 4);
      const [left, right] = [clamp((-x / k) * s, scene.width), clamp(((width - x) / k) * s, scene.width)];
      const [up, down] = [clamp((-y / k) * s, scene.height), clamp(((height - y) / k) * s, scene.height)];
      build(minimap.window, { x: left, y: up, width: right - left, height: down - up }, []);
    }
  }

  function zoom(factor, cx = Number(svg.getAttribute("width")) / 2, cy = height / 2) {
    const k = Math.min(4, Math.max(0.02, view.k * factor));
    view = { k, x: cx - ((cx - view.x) * k) / view.k, y: cy - ((cy - view.y) * k) / view.k };
    look();
  }

  function whole() {
    const width = Number(svg.getAttribute("width"));
    const k = Math.min(1.2, (width - 40) / scene.width, (height - 40) / scene.height);
    view = { k, x: (width - scene.width * k) / 2, y: (height - scene.height * k) / 2 };
    look();
  }

  // As large as can be read, at the top.
  function begin() {
    const width = Number(svg.getAttribute("width"));
    const fits = Math.min((width - 40) / scene.width, (height - 40) / scene.height);
    const k = fits >= 0.6 ? Math.min(1.2, fits) : Math.min(0.9, Math.max(0.55, (width - 40) / scene.width));
    const first = scene.units.find((unit) => unit.kind !== "port");
    const middle = scene.width * k <= width - 40 ? scene.width / 2 : first ? first.left + first.width / 2 : 0;
    view = { k, x: width / 2 - middle * k, y: fits >= 0.6 ? (height - scene.height * k) / 2 : 20 };
    look();
  }

  function drawMinimap() {
    const scale = Math.min(96 / scene.width, (height - 30) / scene.height);
    const width = Number(svg.getAttribute("width"));
    minimap.scale = scale;
    const things = scene.units.filter((unit) => unit.kind !== "port" && unit.kind !== "frame");
    minimap.window = shape("rect", { class: "window" });
    minimap.group.setAttribute("transform", `translate(${width - scene.width * scale - 12},12)`);
    minimap.group.replaceChildren(
      shape("rect", { class: "sheet", x: -5, y: -5, width: scene.width * scale + 10, height: scene.height * scale + 10, rx: 4 }),
      ...things.map((unit) => shape("rect", { class: `thing`, x: unit.left * scale, y: unit.top * scale, width: Math.max(1, unit.width * scale), height: Math.max(0.6, unit.height * scale) })),
      minimap.window,
    );
  }

  function centre(unit) {
    const width = Number(svg.getAttribute("width"));
    if (view.k < 0.55) view.k = 0.9;
    const tall = unit.kind === "frame" ? 0 : unit.height / 2;
    view.x = width / 2 - (unit.left + unit.width / 2) * view.k;
    view.y = height / 2 - (unit.top + tall) * view.k;
    look();
  }

  function toggle(unit) {
    const before = { x: unit.left * view.k + view.x, y: unit.top * view.k + view.y };
    const set = unit.block ? open : shut;
    const id = unit.block ? unit.block.id : unit.node.id;
    if (!set.delete(id)) set.add(id);
    render();
    const again = scene.units.find((other) => other.key === unit.key);
    view.x = before.x - again.left * view.k + (unit.block ? (unit.width - again.width) * view.k * 0.5 : 0);
    view.y = before.y - again.top * view.k;
    look();
    again.element.focus({ preventScroll: true });
  }

  function activate(unit, group) {
    group.focus({ preventScroll: true });
    if (unit.block) toggle(unit);
    else if (unit.node.kind === "control" && selection.node === unit.node.id) toggle(unit);
    else selection.select(unit.node.id, "graph");
  }

  // Opens what hides a node and returns its unit.
  function reveal(id) {
    let changed = false;
    for (let node = nodes[id]; node; node = nodes[node.parent]) {
      if (node.block >= 0 && !open.has(node.block)) changed = open.add(node.block);
      if (node.parent >= 0 && shut.has(node.parent)) changed = shut.delete(node.parent);
      if (folded.delete(`${node.parent} ${node.body}`)) changed = true;
    }
    if (changed) render();
    return scene.units.find((unit) => unit.node && unit.node.id === id);
  }

  function markSelection() {
    for (const unit of scene.units) unit.element.classList.toggle("picked", Boolean(unit.node) && unit.node.id === selection.node);
    for (const wire of world.querySelectorAll(".wire")) {
      wire.classList.toggle("picked", wire.dataset.ends.split(" ").includes(String(selection.node)));
    }
  }

  function markMatches() {
    const found = new Set(matches);
    const hidden = new Set(matches.map((id) => nodes[id].block));
    for (const unit of scene.units) {
      const isMatch = unit.node ? found.has(unit.node.id) : unit.kind === "block" && hidden.has(unit.block.id);
      unit.element.classList.toggle("match", isMatch);
    }
  }

  function search(text) {
    const wanted = text.trim().toLowerCase();
    const names = (node) => [node.name, ...node.members.map((member) => member.name)];
    matches = wanted ? nodes.filter((node) => names(node).some((name) => name.toLowerCase().includes(wanted))).map((node) => node.id) : [];
    markMatches();
    return matches;
  }

  function step(unit, down) {
    if (!unit.node) {
      const all = scene.units.filter((other) => other.kind !== "port");
      return all[all.indexOf(unit) + (down ? 1 : -1)];
    }
    const next = edges.filter((edge) => (down ? edge.from : edge.to) === unit.node.id).map((edge) => (down ? edge.to : edge.from));
    return next.length ? reveal(next[0]) : undefined;
  }

  function onKey(event) {
    const unit = scene.units.find((other) => other.element === document.activeElement);
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (unit && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      const next = step(unit, event.key === "ArrowDown");
      if (next) {
        next.element.focus({ preventScroll: true });
        centre(next);
        if (next.node) selection.select(next.node.id, "graph");
      }
    } else if (unit && (event.key === "Enter" || event.key === " ")) activate(unit, unit.element);
    else if (moves[event.key]) {
      view.x += moves[event.key][0];
      view.y += moves[event.key][1];
      look();
    } else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") whole();
    else if (event.key === "Escape") document.activeElement.blur();
    else return;
    event.preventDefault();
  }

  function openAll(all) {
    open.clear();
    shut.clear();
    if (all) folded.clear();
    if (all) blocks.forEach((block) => open.add(block.id));
    render();
    begin();
  }

  function start() {
    world = shape("g");
    minimap = { group: shape("g", { class: "minimap" }) };
    minimap.clip = shape("g", {}, minimap.group);
    svg = shape("svg", { class: "picture drags", tabindex: "0", role: "application", "aria-label": "The graph of the network" }, world, minimap.clip);
    stage.append(svg);
    dragging(svg, (dx, dy) => {
      view.x += dx;
      view.y += dy;
      look();
    });
    svg.addEventListener("wheel", (event) => {
      if (!svg.contains(document.activeElement) && !event.ctrlKey) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
    }, { passive: false });
    svg.addEventListener("keydown", onKey);
    minimap.group.addEventListener("pointerdown", (event) => {
      const box = minimap.group.querySelector(".sheet").getBoundingClientRect();
      const width = Number(svg.getAttribute("width"));
      view.x = width / 2 - ((event.clientX - box.left - 5) / minimap.scale) * view.k;
      view.y = height / 2 - ((event.clientY - box.top - 5) / minimap.scale) * view.k;
      look();
      event.stopPropagation();
    });
    const buttons = [button("+", "Zoom in", () => zoom(1.25)), button("\u2212", "Zoom out", () => zoom(0.8)), button("Show all", "Show the whole graph", whole)];
    if (blocks.length || folded.size) buttons.push(button("Open all", "Open all blocks", () => openAll(true)), button("Close all", "Close all blocks", () => openAll(false)));
    byId("graph-buttons").append(...buttons);
    let drawn = false;
    onWidth(stage, (width) => {
      height = Math.max(420, Math.min(660, innerHeight - 120));
      build(svg, { width, height, viewBox: `0 0 ${width} ${height}` }, []);
      if (!drawn) {
        drawn = true;
        render();
        const wanted = data.wanted === null ? -1 : data.choices.findIndex((choice) => choice.wanted && choice.drawn >= 0);
        begin();
        if (wanted >= 0) selection.select(data.choices[wanted].drawn, "start");
      } else {
        drawMinimap();
        look();
      }
    });
    selection.listen((node, from) => {
      if (from !== "graph" && node >= 0) centre(reveal(node));
      markSelection();
    });
  }

  return { start, search, reveal, centre, times, bodiesOf };
})();

// Reports how far the pointer drags over an element; a press that does not move stays a click.
function dragging(target, moved) {
  let last = null;
  let far = 0;
  target.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    last = [event.clientX, event.clientY];
    far = 0;
  });
  target.addEventListener("pointermove", (event) => {
    if (!last || event.buttons === 0) return void (last = null);
    const [dx, dy] = [event.clientX - last[0], event.clientY - last[1]];
    far += Math.abs(dx) + Math.abs(dy);
    if (far < 4) return;
    if (!target.hasPointerCapture(event.pointerId)) target.setPointerCapture(event.pointerId);
    last = [event.clientX, event.clientY];
    hideTip();
    moved(dx, dy);
  });
  target.addEventListener("pointerup", () => (last = null));
}
