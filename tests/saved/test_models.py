"""The zoo: every model gives the same bits after it was saved and loaded in a fresh process, of Python and of C."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import neo

from tests.capi.libneo import answers_of
from tests.models import zoo
from tests.models.conftest import each_model, require
from tests.models.engines import source_of
from tests.saved.same_bits import assert_same

# Loads the module of its first argument, answers the pickled feeds of its second into its third.
_LOAD = """
import pickle, sys, neo
from pathlib import Path
module = neo.load(sys.argv[1], threads=2)
cases = pickle.loads(Path(sys.argv[2]).read_bytes())
Path(sys.argv[3]).write_bytes(pickle.dumps([module.run(feeds) for feeds in cases]))
"""


@each_model(lambda model: model.onnxruntime)
def test_loaded_gives_the_same_bits(model: zoo.Model, tmp_path: Path) -> None:
    module = neo.compile(source_of(require(model)), threads=2)
    saved, given, answered = tmp_path / "m.neo", tmp_path / "given", tmp_path / "answered"
    module.save(saved)
    feeds = [case.feeds for case in model.cases()]
    given.write_bytes(pickle.dumps(feeds))
    subprocess.run([sys.executable, "-c", _LOAD, saved, given, answered], check=True)
    answers = pickle.loads(answered.read_bytes())
    (answers_in_c,) = answers_of([(saved, [[case.get(t.name) for t in module.inputs] for case in feeds])], tmp_path)
    for case, got, got_in_c in zip(feeds, answers, answers_in_c, strict=True):
        expected = module.run(case)
        for name, value in expected.items():
            assert_same(got[name], value, name)
        for (name, value), in_c in zip(expected.items(), got_in_c, strict=True):
            assert_same(in_c, value, f"{name} in C")
