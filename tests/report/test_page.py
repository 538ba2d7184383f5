"""The file of a page: whole, self-contained, and free of what names might smuggle in."""

import base64
import hashlib
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import neo
import pytest
from neo.report.page import plain, render_page
from neo.report.write import write_whole

from tests.report.conftest import HOSTILE

ASSETS = Path(neo.__file__).parent / "report" / "assets"


@pytest.fixture(scope="module")
def page(hostile_profile):
    return render_page(hostile_profile[1].data)


def test_a_page_needs_nothing_from_elsewhere(page):
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(
        r"https?://|//cdn|@import|url\(|src=|fetch\(|XMLHttpRequest|eval\(|innerHTML", outside.partition('id="data"')[0]
    )
    script = outside.rpartition("<script>")[2]
    assert not re.search(r"https?://|@import|fetch\(|XMLHttpRequest|eval\(|innerHTML|document\.write", script)


def test_only_the_page_s_own_script_may_run(page):
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    script = page.rpartition("<script>")[2].partition("</script>")[0]
    style = page.partition("<style>")[2].partition("</style>")[0]
    for text in (script, style):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_names_cannot_leave_the_data(page, hostile_profile):
    assert page.count("<script") == page.count("</script") == 2
    assert "<img" not in page
    text = page.partition('id="data">')[2].partition("</script>")[0]
    assert not re.search(r"[<>&\n]", text)
    assert json.loads(text) == json.loads(json.dumps(plain(hostile_profile[1].data)))
    title = page.partition("<title>")[2].partition("</title>")[0]
    assert "&lt;script&gt;" in title
    assert len(title) < 400
    assert {n["name"] for n in json.loads(text)["graph"]["nodes"]} >= set(HOSTILE)


def test_assets_are_readable_files(page):
    files = sorted(ASSETS.iterdir())
    assert {f.suffix for f in files} == {".html", ".css", ".js"}
    for file in files:
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 600, file.name
        if file.suffix != ".html":
            assert file.read_text(encoding="utf-8") in page


def test_a_text_that_is_no_unicode_is_written(tmp_path):
    write_whole(tmp_path / "t.txt", plain("\ud800 lone"))
    assert (tmp_path / "t.txt").read_text(encoding="utf-8") == "? lone"


def test_a_pipe_is_written_where_it_stands(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text)
        write_whole(pipe, "page")
        assert read.result(10) == "page"
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_file_is_whole_or_not_there(residual_profile, tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    target.write_text("before")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        residual_profile[1].html(target)
    assert target.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_the_title_may_be_given(residual_profile, tmp_path):
    residual_profile[1].html(tmp_path / "p.html", title="my network")
    assert "<title>my network · neo</title>" in (tmp_path / "p.html").read_text(encoding="utf-8")
