"use strict";
// What each step does for the bytes it moves, under what the machine can do.

const roofline = (() => {
  const stage = byId("roofline-stage");
  const HEIGHT = 420;
  const EDGE = { left: 66, right: 18, top: 16, bottom: 50 };
  const machine = data.machine;
  const points = data.steps
    .filter((step) => !step.control && step.time_us !== null && step.flops > 0 && step.bytes > 0 && step.gflops > 0)
    .map((step) => ({ step, x: step.flops / step.bytes, y: step.gflops, share: step.time_us / totalTime }))
    .sort((a, b) => b.share - a.share);
  let svg;

  const powers = (low, high) => {
    const found = [];
    for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; ++p) found.push(10 ** p);
    return found;
  };

  function draw(width) {
    build(svg, { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` }, []);
    const knee = machine.gflops / machine.gbps;
    const xLow = Math.min(knee / 30, ...points.map((p) => p.x)) / 1.6;
    const xHigh = Math.max(knee * 8, ...points.map((p) => p.x)) * 1.6;
    const yHigh = Math.max(machine.gflops, ...points.map((p) => p.y)) * 2;
    const yLow = Math.max(yHigh / 1e6, Math.min(machine.gflops / 300, ...points.map((p) => p.y)) / 1.6);
    const scale = (low, high, a, b) => (value) => a + (Math.log(value / low) / Math.log(high / low)) * (b - a);
    const x = scale(xLow, xHigh, EDGE.left, width - EDGE.right);
    const y = scale(yLow, yHigh, HEIGHT - EDGE.bottom, EDGE.top);
    const axis = shape("g", { class: "axis" });
    for (const at of powers(xLow, xHigh)) {
      axis.append(shape("line", { x1: x(at), x2: x(at), y1: EDGE.top, y2: HEIGHT - EDGE.bottom }));
      axis.append(shape("text", { x: x(at), y: HEIGHT - EDGE.bottom + 18, "text-anchor": "middle" }, plainNumber(at)));
    }
    for (const at of powers(yLow, yHigh)) {
      axis.append(shape("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(at), y2: y(at) }));
      axis.append(shape("text", { x: EDGE.left - 8, y: y(at) + 4, "text-anchor": "end" }, plainNumber(at)));
    }
    axis.append(shape("text", { x: (EDGE.left + width - EDGE.right) / 2, y: HEIGHT - 10, "text-anchor": "middle" }, "arithmetic intensity, flop per byte moved"));
    axis.append(shape("text", { transform: `translate(15,${(HEIGHT - EDGE.bottom + EDGE.top) / 2}) rotate(-90)`, "text-anchor": "middle" }, "speed, GFLOP/s"));
    const roof = shape("path", { class: "roof", d: `M${x(xLow)},${y(Math.max(yLow, xLow * machine.gbps))}L${x(knee)},${y(machine.gflops)}H${x(xHigh)}` });
    const labels = shape("g");
    const peak = `peak ${significant(machine.gflops)}\u00a0GFLOP/s, measured on ${data.threads} thread${data.threads > 1 ? "s" : ""}`;
    const latest = width - EDGE.right - fitText.width(peak, "600 12px") - 4;
    labels.append(shape("text", { x: Math.min(x(knee), latest), y: y(machine.gflops) - 9, class: "strong halo" }, peak));
    const [ax, ay, bx, by] = [x(xLow), y(xLow * machine.gbps), x(knee), y(machine.gflops)];
    const slope = (Math.atan2(by - ay, bx - ax) * 180) / Math.PI;
    const along = 0.55;
    labels.append(shape("text", { transform: `translate(${ax + (bx - ax) * along},${ay + (by - ay) * along - 9}) rotate(${slope})`, "text-anchor": "middle", class: "strong halo" }, `memory ${significant(machine.gbps)}\u00a0GB/s`));
    const dots = shape("g");
    for (const point of points) {
      const radius = 4 + 26 * Math.sqrt(point.share);
      const dot = shape("circle", { class: `dot c-${familyOfStep(point.step.id)}`, cx: x(point.x), cy: y(Math.max(yLow, point.y)), r: radius });
      dot.dataset.step = point.step.id;
      dot.addEventListener("click", () => nodeOfStep.has(point.step.id) && selection.select(nodeOfStep.get(point.step.id), "roofline"));
      const bound = Math.min(machine.gflops, point.x * machine.gbps);
      withTip(dot, () =>
        [point.step.node || "(unnamed)", `${point.step.op}  ${point.step.routine}`, `${significant(point.y)} GFLOP/s at ${significant(point.x)} flop/byte: ${percent(point.y / bound)} of the roof`, `${microseconds(point.step.time_us)}, ${percent(point.share)} of the call`].join("\n"),
      );
      dots.append(dot);
    }
    svg.replaceChildren(axis, roof, dots, labels);
  }

  const plainNumber = (value) => (value >= 1 ? significant(value, 1) : String(Number(value.toPrecision(1))));

  function start() {
    if (!machine || !points.length) {
      byId("roofline").hidden = true;
      return;
    }
    svg = shape("svg", { class: "picture", role: "img", "aria-label": "Speed of each step against its arithmetic intensity" });
    stage.append(svg);
    const idle = data.steps.filter((step) => !step.control && step.time_us !== null && !(step.flops > 0));
    const idleTime = idle.reduce((sum, step) => sum + step.time_us, 0);
    byId("roofline-hint").textContent =
      "A dot is a step, its area the time it takes. The lines are what this machine did at most: multiply-adds on registers, and reading from " +
      "memory that no cache holds. Above the slope, data came from caches. Bytes count each operand once; flop counts the direct method, so a " +
      "Winograd convolution may pass the roof." + (idle.length ? ` ${idle.length} steps without arithmetic (${microseconds(idleTime)}, ${percent(idleTime / totalTime)}) are not shown.` : "");
    onWidth(stage, draw);
    selection.listen((node) => {
      for (const dot of svg.querySelectorAll(".dot")) dot.classList.toggle("picked", nodeOfStep.get(Number(dot.dataset.step)) === node);
    });
  }

  return { start };
})();
