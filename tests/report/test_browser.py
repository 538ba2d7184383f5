"""Pages in a real browser; skipped where there is none."""

import time

import neo
import pytest

from tests.report.conftest import HOSTILE, LONG, residual

UNITS = "#graph-stage .unit[data-node]"


def open_all(page):
    if page.locator("#graph-buttons button", has_text="Open all").count():
        page.click("text=Open all")


def drawn(page):
    return page.locator(UNITS).count()


# Units of the graph that overlap without one being inside the other, and texts that stick out of their unit.
FAULTS = """() => {
  const faults = [];
  const boxes = [...document.querySelectorAll("#graph-stage .unit")].map((unit) => [unit, unit.querySelector(":scope > .box").getBoundingClientRect()]);
  for (let i = 0; i < boxes.length; ++i) {
    const [unit, a] = boxes[i];
    for (const text of unit.querySelectorAll("text")) {
      const t = text.getBoundingClientRect();
      if (t.width && (t.left < a.left - 1 || t.right > a.right + 1 || t.top < a.top - 1 || t.bottom > a.bottom + 1)) faults.push("sticks out: " + text.textContent.slice(0, 80));
    }
    for (let j = 0; j < i; ++j) {
      const b = boxes[j][1];
      const apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
      const inside = (x, y) => x.left >= y.left && x.right <= y.right && x.top >= y.top && x.bottom <= y.bottom;
      if (!apart && !inside(a, b) && !inside(b, a)) faults.push("overlap: " + unit.textContent.slice(0, 80) + " / " + boxes[j][0].textContent.slice(0, 80));
    }
  }
  return faults;
}"""

# What of the document is wider than the window, or text that its element cuts off.
CLIPPED = """() => {
  const faults = [];
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the window");
  for (const node of document.querySelectorAll("h1, h2, h3, p, dt, dd, li, button, label, th, td, a")) {
    const style = getComputedStyle(node);
    const scrolls = (value) => value === "auto" || value === "scroll";
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0 && style.display !== "inline" && !scrolls(style.overflowX)) faults.push(node.tagName + ": " + node.textContent.slice(0, 80));
  }
  for (const text of document.querySelectorAll("#timeline-stage text, #roofline-stage text, #memory-stage text")) {
    const t = text.getBoundingClientRect();
    const box = text.ownerSVGElement.getBoundingClientRect();
    if (t.left < box.left - 1 || t.right > box.right + 1 || t.top < box.top - 1 || t.bottom > box.bottom + 1) faults.push("svg: " + text.textContent.slice(0, 80));
  }
  return faults;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800])
@pytest.mark.parametrize(
    "name", ["residual_profile", "branches_profile", "hostile_profile", "thousand_profile", "planned_profile"]
)
def test_all_is_drawn_and_nothing_overlaps_or_is_cut_off(open_page, request, name, width, theme):
    profile = request.getfixturevalue(name)[1]
    page = open_page(profile, width, theme)
    assert page.evaluate("document.documentElement.dataset.theme") == theme
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(FAULTS) == []
    open_all(page)
    nodes = profile.data["graph"]["nodes"]
    assert drawn(page) == len(nodes)
    if len(nodes) < 500:
        assert page.evaluate(FAULTS) == []
        page.click("text=Show all >> nth=0")
        assert page.evaluate(FAULTS) == []


def test_sections_and_units_are_there(open_page, residual_profile):
    page = open_page(residual_profile[1])
    assert page.locator("#sections a").all_inner_texts() == ["Graph", "Timeline", "Roofline", "Memory", "Choices"]
    assert page.locator("h1").inner_text() == "residual"
    timed = [s for s in residual_profile[1].data["steps"] if s["flops"]]
    assert page.locator("#roofline-stage .dot").count() == len(timed)
    assert "GFLOP/s" in page.locator("#roofline-stage").inner_text()
    assert "GB/s" in page.locator("#roofline-stage").inner_text()
    assert page.locator("#memory-stage .buffer").count() == len(residual_profile[1].data["memory"]["buffers"])
    assert "KiB" in page.locator("#memory-totals").inner_text()
    assert page.locator("#timeline-stage .bar").count() > 0
    assert "µs" in page.locator("#timeline-stage").inner_text()
    assert page.locator("#legend li").count() >= 4


def test_a_click_on_a_node_shows_its_candidates_and_rejections(open_page, residual_profile):
    module, profile = residual_profile
    page = open_page(profile)
    node = next(
        n for n in profile.data["graph"]["nodes"] if n["name"] == "stem/conv" or "stem/conv" in str(n["members"])
    )
    page.click(f'{UNITS}[data-node="{node["id"]}"]')
    shown = page.locator("#details").inner_text()
    explanation = module.explain("stem/conv").nodes[0]
    assert node["name"] in shown
    assert explanation.options[0].routine in shown
    rejected = [o for o in explanation.options if o.status == "rejected"]
    assert rejected
    assert all(o.routine in shown and o.reason in shown for o in rejected)
    assert page.locator("#details tr.chosen").count() == len(node["variables"])
    for width in (1280, 1000, 800):
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.locator("#details .wide").evaluate_all("all => all.map((e) => e.scrollWidth - e.clientWidth)")
        assert wide
        assert max(wide) <= 0
    bars = page.locator("#timeline-stage .bar.picked, #memory-stage .buffer.picked, #roofline-stage .dot.picked")
    assert bars.count() >= 2


def test_the_table_of_choices_sorts_opens_and_selects(open_page, residual_profile):
    page = open_page(residual_profile[1])
    page.click("#choices-table th button >> nth=0")
    names = page.locator("#choices-table tr.link td:first-child").all_inner_texts()
    assert names == sorted(names, key=str.lower)
    page.click("#choices-table th button >> nth=0")
    assert page.locator("#choices-table tr.link td:first-child").all_inner_texts() == names[::-1]
    page.click("#choices-table tr.link >> text=dense")
    assert page.locator("#choices-table tr.opened table.options tr").count() > 1
    assert page.locator("#details h3").first.inner_text() == "dense"
    assert page.locator("#graph-stage .unit.picked").count() == 1


def test_search_finds_opens_and_centres(open_page, thousand_profile):
    page = open_page(thousand_profile[1])
    before = drawn(page)
    page.fill("#search", "block123/pool")
    assert page.locator("#found").inner_text() == "1 of 1"
    assert drawn(page) > before
    picked = page.locator("#graph-stage .unit.picked")
    assert picked.count() == 1
    box, stage = picked.bounding_box(), page.locator("#graph-stage svg").bounding_box()
    assert stage["x"] <= box["x"]
    assert box["x"] + box["width"] <= stage["x"] + stage["width"]
    assert stage["y"] <= box["y"]
    assert box["y"] + box["height"] <= stage["y"] + stage["height"]
    page.fill("#search", "stage3/")
    assert page.locator("#found").inner_text().startswith("1 of ")
    page.press("#search", "Enter")
    assert page.locator("#found").inner_text().startswith("2 of ")
    page.fill("#search", "no such node")
    assert page.locator("#found").inner_text() == "nothing found"


@pytest.mark.slow
def test_a_thousand_nodes_are_drawn_within_seconds(open_page, thousand_profile):
    start = time.perf_counter()
    page = open_page(thousand_profile[1])
    assert page.locator("#graph-stage .unit[data-block]").count() > 20
    page.click("text=Open all")
    assert drawn(page) >= 1000
    page.click("text=Show all >> nth=0")
    assert page.locator("#graph-stage svg.far").count() == 1
    assert time.perf_counter() - start < 60  # a hang, not a time


def test_blocks_open_and_close(open_page, thousand_profile):
    page = open_page(thousand_profile[1])
    before = drawn(page)
    block = page.locator('#graph-stage .unit[data-block="1"]')
    block.click()
    assert drawn(page) == before + len(thousand_profile[1].data["graph"]["blocks"][1]["nodes"])
    page.keyboard.press("Enter")
    assert drawn(page) == before


def test_bodies_of_control_flow_are_frames_inside(open_page, branches_profile):
    page = open_page(branches_profile[1])
    by_name = {n["name"]: n["id"] for n in branches_profile[1].data["graph"]["nodes"]}
    box = {name: page.locator(f'{UNITS}[data-node="{i}"] > .box').first for name, i in by_name.items()}
    outer, inner, row = (box[name].bounding_box() for name in ("chooses", "scans", "scan_tanh"))
    for a, b in ((outer, inner), (inner, row)):
        assert a["x"] < b["x"]
        assert b["x"] + b["width"] < a["x"] + a["width"]
        assert a["y"] < b["y"]
        assert b["y"] + b["height"] < a["y"] + a["height"]
    assert box["else_neg"].count() == 0
    page.click("text=did not run")
    assert box["else_neg"].count() == 1
    assert page.locator("#timeline-stage text", has_text="inside").count() == 2


def test_keys_alone_reach_everything(open_page, residual_profile):
    page = open_page(residual_profile[1])
    page.locator("#graph-stage svg").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    first = page.locator("#details h3").first.inner_text()
    page.keyboard.press("ArrowDown")
    assert page.locator("#details h3").first.inner_text() != first
    page.locator("#choices-table tr.link").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#choices-table tr.opened").count() == 1
    page.locator("#timeline-stage svg").focus()
    whole = page.locator("#timeline-range").inner_text()
    page.keyboard.press("+")
    assert page.locator("#timeline-range").inner_text() != whole
    page.keyboard.press("0")
    assert page.locator("#timeline-range").inner_text() == whole
    page.locator("#theme").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_hostile_names_are_only_ever_text(open_page, hostile_profile):
    page = open_page(hostile_profile[1])
    assert page.locator("#graph-stage img, #details img, script >> nth=2").count() == 0
    for node in hostile_profile[1].data["graph"]["nodes"]:
        if node["name"] not in HOSTILE:
            continue
        page.evaluate(f"selection.select({node['id']}, 'test')")
        assert page.locator("#details h3").first.evaluate("e => e.textContent") == node["name"]
        assert page.evaluate(CLIPPED) == []
    page.fill("#search", LONG[:2000])
    assert page.locator("#found").inner_text().startswith("1 of ")


def test_the_page_of_one_node_begins_with_it(open_page):
    module = neo.compile(residual())
    page = open_page(module.explain("dense"))
    assert page.locator("#details h3").first.inner_text() == "dense"
    assert page.locator("#choices-table tr.link").count() == 1
    assert page.locator("#sections a").all_inner_texts() == ["Graph", "Memory", "Choices"]
