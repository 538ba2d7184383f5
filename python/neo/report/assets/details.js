"use strict";
// What there is to say about one node: where it runs, what it takes, what else could have run it.

const details = (() => {
  const pane = byId("details");
  const SHOWN = 10;

  function facts(list) {
    const kept = list.filter(([, value]) => value !== null && value !== undefined && value !== "");
    return element("dl", {}, ...kept.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  }

  const KINDS = {
    step: "a step that any number of threads share",
    host: "a step on one thread that may allocate",
    view: "no step: its outputs are parts of its input's memory, or its inputs of its output's",
    "concat in place": "its inputs are written straight into their places",
    conversion: "a conversion between the layouts that two routines want",
    control: "control flow: its bodies are blocks of the plan",
    input: "an input of the model",
    output: "an output of the model",
    argument: "what the body is given",
    result: "what the body gives back",
  };

  function stepFacts(node) {
    const list = [];
    for (const id of node.steps) {
      const step = data.steps[id];
      if (node.steps.length > 1) list.push(["Step", `${id}: ${step.routine}`]);
      if (step.time_us !== null) {
        list.push(["Measured", `${microseconds(step.time_us)} a call, ${percent(step.time_us / totalTime)}` + (step.calls === 1 ? "" : `, ${step.calls} executions`)]);
      }
      if (step.control) continue;
      list.push(["Expected", `${microseconds(step.estimate_us)} an execution`]);
      if (step.flops) list.push(["Arithmetic", count(step.flops, "flop") + (step.gflops === null ? "" : `, ${significant(step.gflops)}\u00a0GFLOP/s`)]);
      if (step.bytes) list.push(["Traffic", byteCount(step.bytes) + (step.gbps === null ? "" : `, ${significant(step.gbps)}\u00a0GB/s`)]);
    }
    return list;
  }

  const sameNodes = (a, b) => a.nodes.length === b.nodes.length && a.nodes.every((name, i) => name === b.nodes[i]);

  // One node's options; `limit` rows and a button for the rest.
  function optionTable(choice) {
    const best = choice.options.length ? choice.options[0].time_us : null;
    const row = (option) => {
      const times = option.time_us === null ? "" : microseconds(option.time_us) + (option.measured ? " *" : "");
      const ratio = option.status === "slower" && option.time_us !== null && best && sameNodes(option, choice.options[0]) ? ` (${significant(option.time_us / best)}\u00d7)` : "";
      const change = option.change_us === null ? "" : (option.change_us >= 0 ? "+" : "\u2212") + microseconds(Math.abs(option.change_us));
      const routine = element("span", { class: "mono" }, option.routine);
      const reason = element("div", { class: "reason" }, option.reason);
      const status = option.status === "slower" ? null : element("span", { class: "tag" }, option.status);
      return element("tr", { class: option.status }, element("td", {}, status, routine, reason), element("td", { class: "number" }, times, ratio, change ? element("div", { class: "quiet-line" }, `in all ${change}`) : null));
    };
    const offered = choice.options.filter((option) => option.status !== "rejected");
    const rejected = choice.options.filter((option) => option.status === "rejected");
    const head = element("tr", {}, element("th", {}, "Routine"), element("th", { class: "number", title: "of the routine alone; in all: what the call would gain, conversions chosen anew" }, "Time"));
    const body = element("tbody", {}, ...offered.slice(0, SHOWN).map(row), ...rejected.map(row));
    const rest = offered.slice(SHOWN);
    const more = rest.length ? button(`${rest.length} more that are slower`, `Show ${rest.length} more options`, () => {
      body.querySelectorAll("tr")[Math.min(SHOWN, offered.length) - 1].after(...rest.map(row));
      more.remove();
    }) : null;
    return element("div", { class: "wide" }, element("table", { class: "options" }, element("thead", {}, head), body), more);
  }

  // Where the time goes, by node and by kind of node.
  function slowest() {
    const timed = data.graph.nodes.filter((node) => node.kind !== "control").map((node) => [node, nodeTime(node)]).filter(([, time]) => time > 0);
    timed.sort((a, b) => b[1] - a[1]);
    const kinds = new Map();
    for (const [node, time] of timed) {
      const [sum, nodes] = kinds.get(node.label) || [0, 0];
      kinds.set(node.label, [sum + time, nodes + 1]);
    }
    const share = (time) => element("td", { class: "number" }, microseconds(time), element("div", { class: "quiet-line" }, percent(time / totalTime)));
    const square = (family) => element("span", { class: `swatch c-${family}` });
    const rows = timed.slice(0, 8).map(([node, time]) => {
      const name = element("button", { type: "button", class: "plain", onclick: () => selection.select(node.id, "slowest") }, node.name.length > 300 ? node.name.slice(0, 300) + "\u2026" : node.name || "(unnamed)");
      return element("tr", {}, element("td", {}, square(familyOfNode(node))), element("td", {}, name, element("div", { class: "quiet-line" }, node.label)), share(time));
    });
    const sums = [...kinds].sort((a, b) => b[1][0] - a[1][0]).slice(0, 6);
    const kindRows = sums.map(([label, [time, nodes]]) => element("tr", {}, element("td", {}, label), element("td", { class: "number" }, String(nodes)), share(time)));
    const table = (...found) => element("table", {}, element("tbody", {}, ...found));
    return rows.length ? [element("h3", {}, isMeasured ? "The slowest" : "The slowest, as expected"), table(...rows), element("h3", {}, "By kind"), table(...kindRows)] : [];
  }

  function show(id) {
    if (id < 0) {
      pane.replaceChildren(element("p", { class: "hint" }, "Select a node to see where it runs, what it costs and what else could have run it."), ...slowest());
      return;
    }
    const node = data.graph.nodes[id];
    const inside = node.parent >= 0 ? `${data.graph.nodes[node.parent].name || data.graph.nodes[node.parent].op}, ${node.body}` : null;
    const takes = [...new Set(data.graph.edges.filter((edge) => edge.to === id).map((edge) => `${shortSchema(edge.schema)}`))].join(", ");
    const parts = [
      element("h3", {}, node.name || "(unnamed)"),
      facts([
        ["Runs", node.label],
        ["As", KINDS[node.kind] || node.kind],
        ["Routine", node.routine ? element("span", { class: "mono" }, node.routine) : null],
        ["Inside", inside],
        ["Takes", takes],
        ["Gives", node.schema && node.kind !== "output" ? `${shortSchema(node.schema)}, ${node.type}` : node.type],
        ...stepFacts(node),
        ["Constants", (node.constants || []).map((one) => `${one.name}: ${one.type}, ${byteCount(one.bytes)}`).join("\n") || null],
        ...Object.entries(node.attributes),
      ]),
    ];
    if (node.kind === "control") parts.push(element("p", { class: "hint" }, "Select it again to hide or show its bodies."));
    for (const choice of data.choices.filter((one) => node.variables.includes(one.id))) {
      parts.push(element("h3", {}, node.variables.length > 1 ? `Choices for ${choice.op} ${choice.node.slice(0, 300)}` : "Choices"), optionTable(choice));
    }
    pane.replaceChildren(...parts);
    pane.scrollTop = 0;
  }

  function start() {
    show(-1);
    selection.listen(show);
  }

  return { start, optionTable, sameNodes };
})();
