"""Two modules side by side."""

import re
from types import SimpleNamespace

import neo
import numpy as np
import onnx
import pytest
from neo.cli import main
from neo.report.compare import Comparison
from onnx import helper

from tests.api.conftest import build, value
from tests.report.conftest import HOSTILE, residual

X = np.ones((1, 3, 16, 16), np.float32)


@pytest.fixture(scope="module")
def profiles():
    return [neo.compile(residual(), target=target, threads=1).profile({"x": X}) for target in ("cpu:scalar", "cpu")]


def test_every_step_is_in_one_row(profiles):
    comparison = profiles[0].compare(profiles[1], ("scalar", "best"))
    for side, profile in enumerate(profiles):
        inside = sum(row.times_us[side] for row in comparison.rows)
        assert inside == pytest.approx(sum(s.time_us for s in profile.steps))
    names = [name for row in comparison.rows for name in row.nodes]
    assert {"stem/conv", "block/conv", "dense"} <= set(names)
    changes = [abs(b - a) for a, b in (row.times_us for row in comparison.rows)]
    assert changes == sorted(changes, reverse=True)
    assert comparison.totals_us == (profiles[0].total_us, profiles[1].total_us)


def test_a_module_and_itself_run_the_same(profiles):
    comparison = profiles[1].compare(profiles[1])
    assert all(row.first == row.second for row in comparison.rows)
    assert f"{len(comparison.rows)} of {len(comparison.rows)} rows run the same" in str(comparison)
    assert "1.00 times" in str(comparison)


def told(*units):
    """A profile of units: their members, and the microseconds of each."""
    data = {
        "steps": [{"id": i, "time_us": us, "control": False} for i, (_, us) in enumerate(units)],
        "graph": {
            "nodes": [
                {
                    "kind": "step",
                    "name": names[0],
                    "label": "+".join(names),
                    "members": [{"name": name} for name in names],
                    "routine": f"cpu:{len(names)}",
                    "steps": [i],
                }
                for i, (names, _) in enumerate(units)
            ]
        },
    }
    total = sum(us for _, us in units)
    return SimpleNamespace(data=data, total_us=total, threads=1, measured_sizes={})


def test_what_one_fuses_stands_beside_all_of_the_other():
    first = told((["a", "b"], 5.0), (["c"], 1.0), (["d"], 1.0))
    second = told((["a"], 2.0), (["b", "c"], 6.0), (["d"], 1.0))
    rows = Comparison.of(first, second, ("first", "second")).rows
    assert [row.nodes for row in rows] == [("a", "b", "c"), ("d",)]
    assert rows[0].times_us == (6.0, 8.0)
    assert [u.label for u in rows[0].first] == ["a+b", "c"]
    assert [u.label for u in rows[0].second] == ["a", "b+c"]


def test_modules_without_a_node_in_common(profiles):
    other = neo.compile(build([helper.make_node("Relu", ["a"], ["b"], "alone")], [value("a", [4])], [value("b", [4])]))
    comparison = profiles[0].compare(other.profile({"a": np.ones(4, np.float32)}))
    (row,) = [row for row in comparison.rows if row.nodes == ("alone",)]
    assert row.first == ()
    assert row.times_us[0] == 0
    assert "alone" in comparison.table()
    assert len(comparison.table(1).splitlines()) == 4


def test_nothing_beside_nothing():
    nothing = Comparison((), (0.0, 0.0), ("a", "b"))
    assert "0 of 0 rows" in str(nothing)


def test_names_reach_the_page_as_text(hostile_profile, tmp_path):
    profile = hostile_profile[1]
    profile.compare(profile, (HOSTILE[0], HOSTILE[1])).html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("<script") == text.count("</script>") == 1
    body = text.partition("<body>")[2].partition("<script>")[0]
    tags = {"header", "div", "h1", "button", "p", "main", "section", "h2", "table", "thead", "tbody", "tr", "th", "td"}
    assert set(re.findall(r"<(\w+)", body)) <= tags | {"span", "br", "meter"}
    assert not re.search(r"<[^>]* (?:src|style|href|on\w+)=", body)
    assert "default-src 'none'" in text


def test_the_page_in_a_browser(open_file, profiles, tmp_path):
    profiles[0].compare(profiles[1], ("scalar", "best")).html(tmp_path / "page.html")
    for width, theme in ((1280, "light"), (1280, "dark"), (400, "light")):
        page = open_file(tmp_path / "page.html", width, theme)
        assert page.locator("h1").inner_text() == "scalar and best"
        assert page.evaluate("document.documentElement.dataset.theme") == theme
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("tbody tr").count() == len(profiles[0].compare(profiles[1]).rows)
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") != theme


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    onnx.save(residual(), "m.onnx")
    neo.compile("m.onnx", target="cpu:scalar").save("m.neo")
    assert main(["profile", "m.onnx", "--against", "m.neo", "--html", "page.html", "--top", "2"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split() == ["node", "m.onnx", "us", "m.neo", "us", "difference"]
    assert (tmp_path / "page.html").is_file()
    assert main(["profile", "m.onnx", "--against", "m.neo", "--json", "-"]) == 1
    assert "[cli] --against must be alone or with --html" in capsys.readouterr().err
