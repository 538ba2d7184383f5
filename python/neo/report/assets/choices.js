"use strict";
// The table of all choices: what was chosen, the best other routine, and what it would have cost.

const choices = (() => {
  const place = byId("choices-table");
  let rows = [];
  let by = "time";
  let descending = true;

  function summarize(choice) {
    const [chosen] = choice.options;
    const bare = (option) => option.routine.replace(/\{.*$/s, "");
    const others = choice.options.filter((option) => option.status === "slower" && option.time_us !== null && bare(option) !== bare(chosen) && details.sameNodes(option, chosen));
    const best = others.reduce((a, b) => (a === null || b.time_us < a.time_us ? b : a), null);
    const changes = choice.options.filter((option) => option.status === "slower" && option.change_us !== null && option.routine !== chosen.routine);
    const change = changes.reduce((a, b) => (a === null || b.change_us < a.change_us ? b : a), null);
    const node = choice.drawn >= 0 ? data.graph.nodes[choice.drawn] : null;
    const own = node && chosen.status === "chosen" && chosen.routine !== "absorbed";
    const measured = own && isMeasured ? nodeTime(node) : null;
    return { choice, chosen, best, change: change ? change.change_us : null, measured, offered: choice.options.filter((option) => option.status !== "rejected").length, rejected: choice.options.filter((option) => option.status === "rejected").length };
  }

  const COLUMNS = [
    ["node", "Node", (row) => row.choice.node.toLowerCase(), false],
    ["op", "Operator", (row) => row.choice.op, false],
    ["routine", "Chosen", (row) => row.chosen.routine, false],
    ["time", "Expected", (row) => row.chosen.time_us, true],
    ["measured", "Measured", (row) => row.measured, true],
    ["other", "Best other routine", (row) => (row.best ? row.best.time_us : null), true],
    ["change", "Next best, in all", (row) => row.change, true],
    ["options", "Options", (row) => row.offered, true],
  ];
  const columns = COLUMNS.filter(([key]) => key !== "measured" || isMeasured);

  function cells(row) {
    const { choice, chosen, best } = row;
    const made = {
      node: element("td", {}, element("span", { class: "name" }, choice.node.length > 600 ? choice.node.slice(0, 600) + "\u2026" : choice.node || "(unnamed)")),
      op: element("td", {}, choice.op),
      routine: element("td", { class: "mono" }, shortRoutine(chosen.routine)),
      time: element("td", { class: "number" }, chosen.time_us === null ? "" : microseconds(chosen.time_us) + (chosen.measured ? " *" : "")),
      measured: element("td", { class: "number" }, row.measured === null ? "" : microseconds(row.measured)),
      other: element("td", { class: "other" }, ...(best ? [element("span", { class: "mono" }, shortRoutine(best.routine)), ` ${microseconds(best.time_us)}${best.measured ? " *" : ""}`] : [])),
      change: element("td", { class: "number" }, row.change === null ? "" : `${row.change >= 0 ? "+" : "\u2212"}${microseconds(Math.abs(row.change))}`),
      options: element("td", { class: "number" }, `${row.offered}, ${row.rejected} rejected`),
    };
    return columns.map(([key]) => made[key]);
  }

  function sort() {
    const value = columns.find(([key]) => key === by)[2];
    rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
    });
    place.querySelector("tbody").replaceChildren(...rows.map((row) => row.element));
    place.querySelectorAll("th").forEach((th, i) => th.setAttribute("aria-sort", columns[i][0] !== by ? "none" : descending ? "descending" : "ascending"));
    place.querySelectorAll("th button").forEach((head, i) => (head.textContent = columns[i][1] + (columns[i][0] !== by ? "" : descending ? " \u2193" : " \u2191")));
  }

  function start() {
    rows = data.choices.filter((choice) => choice.options.length && (data.wanted === null || choice.wanted)).map(summarize);
    const sum = rows.reduce((total, row) => total + row.offered, 0);
    byId("choices-hint").textContent =
      `${rows.length} nodes, ${sum} options. Expected: what selection took the routine alone to cost. Next best, in all: what the call would gain with the ` +
      "best other option here, conversions chosen anew and the other nodes as they are; empty where others would have to change too. " +
      (data.choices.some((choice) => choice.options.some((option) => option.measured)) ? "* a measured time; the others are estimates. " : "") +
      "Select a row to see all options, and the reasons against the rest.";
    const heads = columns.map(([key, title, , isNumber]) =>
      element("th", { class: isNumber && key !== "other" ? "number" : null, scope: "col" }, element("button", { type: "button", onclick: () => {
        descending = by === key ? !descending : isNumber;
        by = key;
        sort();
      } }, title)),
    );
    place.append(element("table", {}, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {})));
    for (const row of rows) {
      row.element = element("tr", { class: "link", tabindex: "0" }, ...cells(row));
      row.element.dataset.choice = row.choice.id;
      const act = () => open(row);
      row.element.addEventListener("click", act);
      row.element.addEventListener("keydown", (event) => event.key === "Enter" && act());
    }
    if (isMeasured) by = "measured";
    sort();
    selection.listen((node) => {
      for (const row of rows) row.element.classList.toggle("picked", node >= 0 && row.choice.drawn === node);
    });
  }

  // All options of a row below it; again: closed.
  function open(row) {
    const next = row.element.nextElementSibling;
    const isOpen = next && next.classList.contains("opened");
    place.querySelectorAll("tr.opened").forEach((other) => other.remove());
    if (isOpen) return;
    row.element.after(element("tr", { class: "opened" }, element("td", { colspan: columns.length }, details.optionTable(row.choice))));
    if (row.choice.drawn >= 0) selection.select(row.choice.drawn, "choices");
  }

  return { start };
})();
