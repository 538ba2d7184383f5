"use strict";
// Puts the page together.

function sizesText(sizes) {
  return Object.entries(sizes).map(([symbol, size]) => `${symbol}=${size}`).join(", ");
}

function facts() {
  const list = [["Target", `${data.target}, ${data.threads} thread${data.threads > 1 ? "s" : ""}`]];
  if (data.total_us !== null) list.push(["A call takes", microseconds(data.total_us) + (sizesText(data.measured_sizes) && ` at ${sizesText(data.measured_sizes)}`)]);
  list.push(["Selection expected", microseconds(data.estimate_us) + (sizesText(data.estimate_sizes) && ` at ${sizesText(data.estimate_sizes)}`)]);
  if (data.bound) list.push(["Selection is", data.bound.text]);
  list.push(["Steps", String(data.steps.filter((step) => !step.control).length)]);
  const conversions = data.graph.nodes.filter((node) => node.kind === "conversion");
  const time = conversions.reduce((sum, node) => sum + (nodeTime(node) || 0), 0);
  list.push(["Conversions", conversions.length ? `${conversions.length}, ${microseconds(time)}` : "none"]);
  if (data.machine) list.push(["This machine at most", `${significant(data.machine.gflops)}\u00a0GFLOP/s, ${significant(data.machine.gbps)}\u00a0GB/s`]);
  if (data.tuning) list.push(["Tuning", data.tuning]);
  byId("model").textContent = data.model || "model";
  byId("facts").append(...list.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function legend() {
  const used = new Set(data.graph.nodes.filter((node) => node.steps.length || node.kind === "view" || node.kind === "control").map(familyOfNode));
  const item = (picture, text) => element("li", {}, picture, text);
  const swatch = (family) => element("span", { class: `swatch c-${family}` });
  const outline = (classes, round) => shape("svg", { width: 26, height: 14 }, shape("g", { class: `unit ${classes}` }, classes.includes("fused") ? shape("rect", { class: "shade", x: 4, y: 4, width: 20, height: 9, rx: 2 }) : null, shape("rect", { class: "box", x: 1, y: 1, width: 21, height: 10, rx: round })));
  const items = FAMILIES.filter(([family]) => used.has(family)).map(([family, title]) => item(swatch(family), title));
  if (data.graph.nodes.some((node) => node.members.length > 1)) items.push(item(outline("fused", 2), "several nodes fused into one step"));
  if (data.graph.nodes.some((node) => node.kind === "conversion")) items.push(item(outline("conversion", 5), "conversion between layouts"));
  if (data.graph.nodes.some((node) => node.kind === "view")) items.push(item(outline("view", 2), "view: costs nothing"));
  items.push(item(shape("svg", { width: 26, height: 14 }, shape("rect", { class: "heat", x: 1, y: 5, width: 22, height: 4 })), "share of the slowest one\u2019s time"));
  byId("legend").append(...items);
}

function sections() {
  const links = [...document.querySelectorAll("main > section")].filter((section) => !section.hidden);
  byId("sections").append(...links.map((section) => element("a", { href: `#${section.id}` }, section.querySelector("h2").textContent)));
}

function searching() {
  const field = byId("search");
  let found = [];
  let at = -1;
  const tell = () => (byId("found").textContent = !field.value.trim() ? "" : found.length ? `${at + 1} of ${found.length}` : "nothing found");
  const go = (next) => {
    if (!found.length) return;
    at = (next + found.length) % found.length;
    selection.select(found[at], "search");
    tell();
  };
  field.addEventListener("input", () => {
    found = graphView.search(field.value);
    at = -1;
    if (found.length) go(0);
    else tell();
  });
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") go(at + (event.shiftKey ? -1 : 1));
    if (event.key === "Escape") {
      field.value = "";
      found = graphView.search("");
      tell();
    }
  });
}

theme();
facts();
legend();
details.start();
timeline.start();
roofline.start();
memory.start();
choices.start();
graphView.start();
sections();
searching();
document.documentElement.dataset.ready = "yes";
