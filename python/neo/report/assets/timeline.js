"use strict";
// One call over time: steps by depth of nesting, then what each thread was doing.

const timeline = (() => {
  const stage = byId("timeline-stage");
  const LEFT = 74;
  const ROW = 24;
  const end = Math.max(1e-9, ...data.events.map((event) => event.end_us));
  let from = 0;
  let to = end;
  let svg, width;

  // Rows of bars {step, start, end}, each row in order of start.
  function makeRows() {
    const depth = (step) => {
      let levels = 0;
      for (let s = data.steps[step]; s.parent >= 0; s = data.steps[s.parent]) ++levels;
      return levels;
    };
    const rows = [];
    for (const event of data.events) {
      const level = depth(event.step);
      (rows[level] = rows[level] || { title: level ? "inside" : "steps", bars: [] }).bars.push({ step: event.step, start: event.start_us, end: event.end_us, iteration: event.iteration });
    }
    const threads = [];
    for (let i = 0; i < data.threads; ++i) threads.push({ title: data.executors[0] > 1 ? `executor ${Math.floor(i / data.executors[1])}, thread ${i}` : `thread ${i}`, bars: [], isThread: true });
    for (const span of data.spans) {
      if (threads[span.thread]) threads[span.thread].bars.push({ step: span.step, start: span.start_us, end: span.end_us, iteration: -1 });
    }
    return [...rows.filter(Boolean), ...threads];
  }
  const rows = makeRows();

  function tipOf(bar, row) {
    const step = data.steps[bar.step];
    const parts = [step.node || "(unnamed)", `${step.op}  ${step.routine}`, `${microseconds(bar.end - bar.start)}, from ${microseconds(bar.start)} to ${microseconds(bar.end)}`];
    if (bar.iteration >= 0) parts.push(`iteration ${bar.iteration}`);
    if (!row.isThread && !step.control) parts.push(`expected ${microseconds(step.estimate_us)}`);
    return parts.join("\n");
  }

  function drawRow(row, y, group) {
    const scale = (width - LEFT - 8) / (to - from);
    const x = (us) => LEFT + (us - from) * scale;
    group.append(shape("text", { x: LEFT - 10, y: y + 16, "text-anchor": "end", class: "quiet" }, row.title));
    let many = null; // bars too narrow to be told apart, drawn as one
    const flush = () => {
      if (!many) return;
      const { count: bars, start, finish } = many;
      const bar = shape("rect", { class: "many", x: start, y, width: Math.max(0.6, finish - start), height: ROW - 5 });
      group.append(withTip(bar, () => `${bars} executions: zoom in`));
      many = null;
    };
    for (const bar of row.bars) {
      if (bar.end < from || bar.start > to) continue;
      const [a, b] = [Math.max(x(bar.start), LEFT), Math.min(x(bar.end), width - 8)];
      if (b - a < 1.2) {
        if (many && a - many.finish < 0.8) {
          many.finish = Math.max(many.finish, b);
          ++many.count;
        } else {
          flush();
          many = { count: 1, start: a, finish: b };
        }
        continue;
      }
      flush();
      const step = data.steps[bar.step];
      const box = shape("rect", { class: `bar c-${familyOfStep(bar.step)}`, x: a, y, width: b - a, height: ROW - 5, rx: Math.min(3, (b - a) / 3), "fill-opacity": row.isThread ? 0.75 : null });
      box.dataset.step = bar.step;
      if (nodeOfStep.get(bar.step) === selection.node) box.classList.add("picked");
      box.addEventListener("click", () => nodeOfStep.has(bar.step) && selection.select(nodeOfStep.get(bar.step), "timeline"));
      group.append(withTip(box, () => tipOf(bar, row)));
      const text = b - a > 24 ? shortLabel(step.node, step.op, b - a - 8) : "";
      if (text) {
        const label = shape("text", { class: "bar-label", x: a + 4, y: y + 14 }, text);
        label.style.fill = "var(--on-family)";
        group.append(label);
      }
    }
    flush();
  }

  function draw() {
    const height = rows.length * ROW + 34;
    build(svg, { width, height, viewBox: `0 0 ${width} ${height}` }, []);
    const scale = (width - LEFT - 8) / (to - from);
    const axis = shape("g", { class: "axis" });
    for (const at of ticks(from, to, Math.max(2, (width - LEFT) / 130))) {
      const x = LEFT + (at - from) * scale;
      axis.append(shape("line", { x1: x, x2: x, y1: 4, y2: rows.length * ROW + 8 }));
      const anchor = x > width - 50 ? "end" : x < LEFT + 24 ? "start" : "middle";
      axis.append(shape("text", { x, y: rows.length * ROW + 24, "text-anchor": anchor }, microseconds(at)));
    }
    const bars = shape("g");
    rows.forEach((row, i) => drawRow(row, 6 + i * ROW, bars));
    svg.replaceChildren(axis, bars);
    svg.dataset.bars = bars.querySelectorAll(".bar").length;
    byId("timeline-range").textContent = `${microseconds(from)} to ${microseconds(to)} of ${microseconds(end)}`;
  }

  function zoom(factor, at = (from + to) / 2) {
    const span = Math.min(end, Math.max(end / 1e5, (to - from) / factor));
    const start = Math.min(Math.max(0, at - ((at - from) * span) / (to - from)), end - span);
    [from, to] = [start, start + span];
    draw();
  }

  function move(us) {
    const shift = Math.min(Math.max(us, -from), end - to);
    from += shift;
    to += shift;
    draw();
  }

  function onKey(event) {
    const span = to - from;
    if (event.key === "ArrowLeft") move(-span / 8);
    else if (event.key === "ArrowRight") move(span / 8);
    else if (event.key === "+" || event.key === "=") zoom(1.5);
    else if (event.key === "-") zoom(1 / 1.5);
    else if (event.key === "0") zoom(1e-9);
    else if (event.key === "Escape") svg.blur();
    else return;
    event.preventDefault();
  }

  function start() {
    if (!data.events.length) {
      byId("timeline").hidden = true;
      return;
    }
    svg = shape("svg", { class: "picture drags", tabindex: "0", role: "application", "aria-label": "Steps of one call over time" });
    stage.append(svg);
    dragging(svg, (dx) => move((-dx * (to - from)) / (width - LEFT - 8)));
    svg.addEventListener("keydown", onKey);
    svg.addEventListener("wheel", (event) => {
      if (document.activeElement !== svg && !event.ctrlKey) return;
      event.preventDefault();
      const x = event.clientX - svg.getBoundingClientRect().left;
      zoom(Math.exp(-event.deltaY * 0.002), from + ((x - LEFT) / (width - LEFT - 8)) * (to - from));
    }, { passive: false });
    byId("timeline-buttons").append(button("+", "Zoom in", () => zoom(1.5)), button("\u2212", "Zoom out", () => zoom(1 / 1.5)), button("Show all", "Show the whole call", () => zoom(1e-9)));
    byId("timeline-hint").textContent =
      "The call whose time is the median. Above: the steps, with the bodies of control flow below what runs them. Below: when each thread " +
      "worked; thread 0 is the caller\u2019s. A gap in a thread is time that it waited. Click a bar to see its node.";
    onWidth(stage, (now) => {
      width = now;
      draw();
    });
    selection.listen((node) => {
      for (const bar of svg.querySelectorAll(".bar")) bar.classList.toggle("picked", nodeOfStep.get(Number(bar.dataset.step)) === node);
    });
  }

  return { start };
})();
