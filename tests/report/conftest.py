"""Models to look at: a branching one, control flow, names from hell, a thousand nodes; and a browser."""

import os
import shutil

import neo
import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.api.conftest import build, value

LONG = "long" * 2500
HOSTILE = [
    "</script><script>window.broken = 1</script>",
    '<img src=x onerror="window.broken = 2">\'`\\u003c',
    "two\nlines\r\n\t\u2028\u202eback",
    LONG,
    "{{script}} {{data}} <!-- ]]> &lt;",
    "snow \u2603 \U0001f409",
]


def weights(*shape, seed=0):
    return (0.1 * np.random.default_rng(seed).standard_normal(shape)).astype(np.float32)


def residual():
    """A stem, two branches that are added, a view, a product: convolutions in blocked layouts, an output in the middle."""
    return build(
        [
            helper.make_node("Conv", ["x", "w0"], ["a"], "stem/conv", pads=[1] * 4),
            helper.make_node("Relu", ["a"], ["b"], "stem/relu"),
            helper.make_node("Conv", ["b", "w1"], ["c"], "block/conv", pads=[1] * 4),
            helper.make_node("Add", ["c", "b"], ["d"], "block/add"),
            helper.make_node("Relu", ["d"], ["e"], "block/relu"),
            helper.make_node("GlobalAveragePool", ["e"], ["f"], "pool"),
            helper.make_node("Flatten", ["f"], ["g"], "flatten"),
            helper.make_node("Gemm", ["g", "w2"], ["h"], "dense"),
        ],
        [value("x", ["N", 3, 16, 16])],
        [value("h", ["N", 10]), value("b", ["N", 32, 16, 16])],
        {"w0": weights(32, 3, 3, 3), "w1": weights(32, 32, 3, 3, seed=1), "w2": weights(32, 10, seed=2)},
        name="residual",
    )


def branches():
    """Scan inside If; the other branch is short."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "v"], ["s_out"], "scan_adds"),
            helper.make_node("Tanh", ["s_out"], ["row"], "scan_tanh"),
        ],
        "body",
        [value("s", [4]), value("v", [4])],
        [value("row", [4]), value("s_out", [4])],
    )
    then = helper.make_graph(
        [
            helper.make_node("Scan", ["zero", "x"], ["last", "rows"], "scans", body=body, num_scan_inputs=1),
            helper.make_node("Exp", ["rows"], ["then_out"], "then_exp"),
        ],
        "then",
        [],
        [value("then_out", [6, 4])],
    )
    other = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["else_out"], "else_neg")], "else", [], [value("else_out", [6, 4])]
    )
    return build(
        [
            helper.make_node("If", ["go"], ["y"], "chooses", then_branch=then, else_branch=other),
            helper.make_node("Sigmoid", ["y"], ["z"], "ends"),
        ],
        [value("go", [], TensorProto.BOOL), value("x", [6, 4])],
        [value("z", [6, 4])],
        {"zero": np.zeros(4, np.float32)},
        name="branches",
    )


def hostile():
    """A chain whose names are what names should not be."""
    names = ["x", *(f"value {name}" for name in HOSTILE)]
    nodes = [
        helper.make_node("MaxPool", [before], [after], name, kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])
        for before, after, name in zip(names, names[1:], HOSTILE, strict=False)
    ]
    return build(nodes, [value("x", [1, 4, 8, 8])], [value(names[-1], [1, 4, 8, 8])], name=HOSTILE[0] + LONG)


def thousand():
    """250 residual blocks of four nodes that nothing fuses."""
    nodes, constants, x = [], {}, "x"
    for b in range(250):
        folder = f"/stage{b // 25}/block{b}"
        constants[f"w{b}"] = weights(8, 8, 3, 3, seed=b)
        pooling = {"kernel_shape": [3, 3], "pads": [1] * 4}
        nodes += [
            helper.make_node("Conv", [x, f"w{b}"], [f"c{b}"], f"{folder}/conv", pads=[1] * 4),
            helper.make_node("MaxPool", [f"c{b}"], [f"p{b}"], f"{folder}/pool", **pooling),
            helper.make_node("AveragePool", [x], [f"s{b}"], f"{folder}/side", **pooling),
            helper.make_node("Mul", [f"p{b}", f"s{b}"], [f"y{b}"], f"{folder}/mul"),
        ]
        x = f"y{b}"
    return build(nodes, [value("x", [1, 8, 8, 8])], [value(x, [1, 8, 8, 8])], constants, name="thousand")


def measured(model, inputs):
    module = neo.compile(model, threads=2)
    return module, module.profile(inputs, repeat=2)


@pytest.fixture(scope="session")
def residual_profile():
    return measured(residual(), {"x": weights(2, 3, 16, 16)})


@pytest.fixture(scope="session")
def branches_profile():
    return measured(branches(), {"go": np.array(True), "x": weights(6, 4)})


@pytest.fixture(scope="session")
def hostile_profile():
    return measured(hostile(), {"x": weights(1, 4, 8, 8)})


@pytest.fixture(scope="session")
def thousand_profile():
    return measured(thousand(), {"x": weights(1, 8, 8, 8)})


@pytest.fixture(scope="session")
def planned_profile(tmp_path_factory):
    """Of a module that was loaded, which has its plan only."""
    path = tmp_path_factory.mktemp("saved") / "branches.neo"
    neo.compile(branches(), threads=2).save(path)
    module = neo.load(path, threads=2)
    return module, module.profile({"go": np.array(True), "x": weights(6, 4)}, repeat=2)


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    known = ("chromium", "chromium-browser", "google-chrome", "chrome")
    found = next((path for name in known if (path := shutil.which(name))), None)
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as engine:
        try:
            running = engine.chromium.launch(executable_path=found, args=options)
        except playwright.Error as error:
            pytest.skip(f"needs a Chromium browser: {str(error).splitlines()[0]}")
        yield running
        running.close()


@pytest.fixture
def open_file(browser):
    """Opens a page; afterwards no script may have failed and nothing may have been loaded."""
    pages, troubles, requests = [], [], []

    def open_path(path, width=1280, theme="light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
        pages.append(page)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_path
    assert troubles == []
    assert all(url.startswith("file:") for url in requests)
    for page in pages:
        assert page.evaluate("window.broken") is None
        page.close()


@pytest.fixture
def open_page(open_file, tmp_path):
    """Writes a report's page and opens it."""

    def open_report(report, width=1280, theme="light"):
        path = tmp_path / "page.html"
        report.html(path)
        page = open_file(path, width, theme)
        page.wait_for_selector("html[data-ready]", timeout=20000)
        page.wait_for_selector("#graph-stage svg[data-units]", timeout=20000)
        return page

    return open_report
