"""The file of measured times."""

import dataclasses
import sqlite3
import subprocess
import sys

import neo
import pytest
from neo.tune import Database, Row, Verdict, default_path
from neo.tune.machine import Context, kernels_fingerprint, machine_fingerprint

from .conftest import HERE

ROW = Row("cpu:float32/fast{a=1} X -> Y", "cpu:float32/fast", 2.5, 3.0, 9)


def look(database, context=HERE, workload="w", residence="shared"):
    return database.lookup(context, [(workload, residence)])[workload, residence]


def test_what_is_stored_is_found_again_by_another_opening(path):
    with Database(path) as database:
        database.store(HERE, "w", "shared", [ROW])
    with Database(path, read_only=True) as database:
        assert look(database) == {ROW.candidate: ROW}


def test_a_row_is_there_before_the_database_is_closed(path, database):
    database.store(HERE, "w", "shared", [ROW])
    with Database(path, read_only=True) as other:
        assert look(other) == {ROW.candidate: ROW}


@pytest.mark.parametrize(
    "change", [{"machine": "another"}, {"kernels": "newer"}, {"target": "avx512"}, {"threads": 1}], ids=str
)
def test_another_context_has_times_of_its_own(database, change):
    database.store(HERE, "w", "shared", [ROW])
    assert look(database, dataclasses.replace(HERE, **change)) == {}


def test_another_workload_or_residence_has_times_of_its_own(database):
    database.store(HERE, "w", "shared", [ROW])
    assert look(database, workload="v") == {}
    assert look(database, residence="memory") == {}


def test_a_later_time_replaces_an_earlier_one(database):
    database.store(HERE, "w", "shared", [ROW])
    later = dataclasses.replace(ROW, time_us=1.0)
    database.store(HERE, "w", "shared", [later])
    assert look(database) == {ROW.candidate: later}


def test_a_verdict_is_found_by_its_digest_and_context(database):
    database.store_verdict(HERE, "digest", Verdict(2.0, 1.0))
    assert database.verdict(HERE, "digest") == Verdict(2.0, 1.0)
    assert database.verdict(HERE, "other") is None
    assert database.verdict(dataclasses.replace(HERE, threads=7), "digest") is None


def test_a_missing_file_that_is_only_read_is_empty_and_stays_missing(path):
    with Database(path, read_only=True) as database:
        assert look(database) == {}
        assert database.verdict(HERE, "digest") is None
        assert database.contexts() == []
    assert not path.exists()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_database_is_one_clear_error(path, read_only):
    path.write_bytes(b"neither SQLite nor anything else " * 100)
    with pytest.raises(neo.ResourceError, match=r"^\[database\] the tuning database must be readable.* Got .* - at "):
        Database(path, read_only=read_only)
    assert path.read_bytes().startswith(b"neither")


def test_a_damaged_database_is_one_clear_error(path):
    with Database(path) as database:
        database.store(HERE, "w", "shared", [ROW])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    error = pytest.raises(neo.ResourceError, match=r"^\[database\] the tuning database must be")
    with error, Database(path) as database:
        look(database)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_another_application_is_refused_and_left_alone(path, read_only):
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE precious (x)")
    foreign.close()
    with pytest.raises(neo.ResourceError, match=r"^\[database\] the file must be a tuning database of neo\."):
        Database(path, read_only=read_only)
    with sqlite3.connect(path) as foreign:
        assert [r[0] for r in foreign.execute("SELECT name FROM sqlite_master")] == ["precious"]
    foreign.close()


def test_a_database_of_another_version_is_refused(path):
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(neo.ResourceError, match=r"must be of this version\. Got 99, expected 2"):
        Database(path)


def test_a_folder_is_no_database(tmp_path, model):
    with pytest.raises(neo.ResourceError, match=r"^\[database\]"):
        neo.compile(model, tune=True, database=tmp_path)


STORE_MANY = """
import sys
from neo.tune import Context, Database, Row
with Database(sys.argv[1]) as database:
    for i in range(20):
        row = Row("a -> b", "a", 2.5, 3.0, 9)
        database.store(Context("a machine", "some kernels", "avx2", 2), f"{sys.argv[2]}.{i}", "shared", [row])
"""


def test_several_processes_make_and_fill_one_file(path):
    processes = [subprocess.Popen([sys.executable, "-c", STORE_MANY, str(path), str(n)]) for n in range(3)]
    assert [p.wait() for p in processes] == [0, 0, 0]
    with Database(path, read_only=True) as database:
        assert database.contexts() == [(HERE, 60, 60)]


def test_clearing_deletes_all_or_what_other_kernels_measured(database):
    old = dataclasses.replace(HERE, kernels="older")
    for context in (HERE, old):
        database.store(context, "w", "shared", [ROW])
    assert database.clear(keep={"kernels": HERE.kernels}) == 1
    assert look(database) == {ROW.candidate: ROW}
    assert look(database, old) == {}
    assert database.clear() == 1
    assert list(database.rows()) == []
    database.store(HERE, "w", "shared", [ROW])
    assert look(database) == {ROW.candidate: ROW}


def test_the_default_lies_in_the_cache_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "neo" / "tuning.db"
    for unusable in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert default_path() == tmp_path / ".cache" / "neo" / "tuning.db"


def test_a_context_names_the_instruction_set_that_runs():
    host = neo._native.host_isa()
    assert Context.here("cpu", 2) == Context.here(f"cpu:{host}", 2)
    assert Context.here("cpu:scalar", 2).target == "scalar"
    assert machine_fingerprint() in str(Context.here("cpu", 2))


def test_kernels_go_by_their_content(monkeypatch, tmp_path):
    from neo import _native

    file = tmp_path / "library.so"
    monkeypatch.setattr(_native, "library_path", lambda: file)
    seen = set()
    for content in (b"one", b"two", b"one"):
        file.write_bytes(content)
        kernels_fingerprint.cache_clear()
        seen.add(kernels_fingerprint())
    kernels_fingerprint.cache_clear()
    assert len(seen) == 2
