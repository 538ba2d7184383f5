"""The file of measured times."""

import dataclasses
import importlib
import sqlite3
import subprocess
import sys
import time

import neo
import pytest
from neo.tune import Database, Record, Row, Verdict, default_path
from neo.tune.machine import Context, kernels_fingerprint, machine_fingerprint

from .conftest import HERE

ROW = Row("cpu:float32/fast{a=1} X -> Y", "cpu:float32/fast", 2.5, 3.0, 9)


def look(database, context=HERE, workload="w", cache_level="shared"):
    return database.lookup(context, [(workload, cache_level)])[workload, cache_level]


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


def test_another_workload_or_cache_level_has_times_of_its_own(database):
    database.store(HERE, "w", "shared", [ROW])
    assert look(database, workload="v") == {}
    assert look(database, cache_level="memory") == {}


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
    with pytest.raises(neo.ResourceError, match=r"must be of this version\. Got 99, expected 3"):
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


OLD = """
CREATE TABLE contexts (
  id INTEGER PRIMARY KEY,
  machine TEXT NOT NULL, kernels TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL,
  UNIQUE (machine, kernels, target, threads)
);
CREATE TABLE workloads (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE measurements (
  context INTEGER NOT NULL REFERENCES contexts(id) ON DELETE CASCADE,
  workload INTEGER NOT NULL REFERENCES workloads(id) ON DELETE CASCADE,
  residence TEXT NOT NULL, candidate TEXT NOT NULL, routine TEXT NOT NULL, time_us REAL, estimate_us REAL NOT NULL,
  rounds INTEGER NOT NULL, failure TEXT NOT NULL, made REAL NOT NULL,
  PRIMARY KEY (context, workload, residence, candidate)
) WITHOUT ROWID;
CREATE TABLE verdicts (
  context INTEGER NOT NULL REFERENCES contexts(id) ON DELETE CASCADE,
  digest TEXT NOT NULL, default_us REAL NOT NULL, tuned_us REAL NOT NULL, made REAL NOT NULL,
  PRIMARY KEY (context, digest)
) WITHOUT ROWID;
INSERT INTO contexts VALUES (1, 'a machine', 'some kernels', 'avx2', 2);
INSERT INTO workloads VALUES (1, 'w');
INSERT INTO measurements VALUES (1, 1, 'shared', 'cpu:float32/fast{a=1} X -> Y', 'cpu:float32/fast', 2.5, 3.0, 9, '', 5.0);
PRAGMA application_id = 1852141428;
PRAGMA user_version = 1;
"""


@pytest.fixture
def old(path):
    """A file as the first version made it."""
    connection = sqlite3.connect(path)
    connection.executescript(OLD)
    connection.close()
    return path


def test_a_file_of_the_first_version_is_migrated_when_it_is_written(old):
    with Database(old) as database:
        assert look(database) == {ROW.candidate: ROW}
        database.store(HERE, "v", "shared", [ROW])
        assert [r.version for r in database.records()] == [neo.__version__, ""]
    with Database(old) as database:
        assert len(list(database.rows())) == 2


#: A candidate as an old file has it, and by the names that its routine and its parameters have now.
OLD_NAMES = {
    "cpu:float32/first_depthwise{rows=2} X -> Y": "cpu:float32/stem_depthwise{rows=2} X -> Y",
    "cpu:float32/panel{columns=48 k=64} X, X -> X": "cpu:float32/im2col{columns=48 k=64} X, X -> X",
    "cpu:float32/panel X -> X": "cpu:float32/im2col X -> X",
    "cpu:float32/direct_nchwc{ahead=1 chunk=3 ic_bn=16 oc_bn=16 panels=2 reg_n=6} X, - -> X": (
        "cpu:float32/direct_nchwc{chunk=3 ic_bn=16 oc_bn=16 panels=2 prefetch=1 reg_n=6} X, - -> X"
    ),
    "cpu/assemble": "cpu/concat_in_place",
}


@pytest.mark.parametrize("read_only", [False, True])
def test_routines_and_parameters_of_an_old_file_get_the_names_that_they_have_now(old, read_only):
    connection = sqlite3.connect(old)
    for candidate in OLD_NAMES:
        routine = candidate.partition(" ")[0].partition("{")[0]
        connection.execute(
            "INSERT INTO measurements VALUES (1, 1, 'memory', ?, ?, 1.0, 2.0, 9, '', 5.0)", (candidate, routine)
        )
    connection.commit()
    connection.close()
    with Database(old, read_only=read_only) as database:
        names = {(record.cache_level, record.row.routine, record.row.candidate) for record in database.records()}
    current = {("memory", new.partition(" ")[0].partition("{")[0], new) for new in OLD_NAMES.values()}
    assert names == {("shared", ROW.routine, ROW.candidate), *current}


def test_a_file_of_the_first_version_is_read_as_it_is(old):
    before = old.read_bytes()
    with Database(old, read_only=True) as database:
        assert look(database) == {ROW.candidate: ROW}
        assert [(r.made, r.version) for r in database.records()] == [(5.0, "")]
        assert database.hints(dataclasses.replace(HERE, threads=1), [("w", "shared")])
    assert old.read_bytes() == before


def test_a_damaged_file_is_refused_before_anything_is_written(path):
    with Database(path) as database:
        for i in range(200):
            database.store(HERE, f"workload {i}", "shared", [ROW])
    damaged = bytearray(path.read_bytes())
    damaged[-8192:-4096] = b"\xa5" * 4096
    path.write_bytes(damaged)
    with pytest.raises(neo.ResourceError, match=r"^\[database\] the tuning database must be"):
        Database(path)
    assert path.read_bytes() == damaged


def test_a_row_says_when_which_version_and_how_far_its_rounds_spread(database):
    spread = dataclasses.replace(ROW, spread_us=0.25)
    before = time.time()
    database.store(HERE, "w", "shared", [spread])
    (record,) = database.records()
    assert (record.row, record.version) == (spread, neo.__version__)
    assert before - 1 <= record.made <= time.time() + 1


def test_hints_are_what_other_contexts_measured_and_the_nearest_counts(database):
    def at(us, **context):
        database.store(dataclasses.replace(HERE, **context), "w", "shared", [dataclasses.replace(ROW, time_us=us)])

    def hint():
        found = database.hints(HERE, [("w", "shared"), ("v", "shared")])
        return found["w", "shared"][ROW.candidate].time_us if found else None

    at(1.0)
    assert hint() is None, "this context's times are no hints"
    at(9.0, machine="far", threads=8)
    assert hint() == 9.0
    at(7.0, machine="alike")
    assert hint() == 7.0
    at(5.0, kernels="an earlier build", threads=1)
    assert hint() == 5.0
    at(4.0, kernels="an earlier build")
    assert hint() == 4.0
    at(8.0, machine="alike too")
    assert hint() == 4.0
    at(None, kernels="another build")
    assert hint() == 4.0, "a failure is no hint"
    near = dataclasses.replace(HERE, kernels="an earlier build")
    database.store(near, "w", "memory", [dataclasses.replace(ROW, time_us=1.5)])
    assert hint() == 4.0, "constants lay elsewhere"


def test_merging_keeps_the_later_of_two_measurements_and_leaves_the_sources(tmp_path):
    late, early = dataclasses.replace(ROW, time_us=1.0), dataclasses.replace(ROW, time_us=2.0)
    stored = [("a", early, 10.0, 1.0), ("b", late, 20.0, 2.0)]
    for name, row, made, tuned_us in stored:
        with Database(tmp_path / name) as database:
            database.add([Record(HERE, "w", "shared", row, made, "1.0")])
            database.add([Record(HERE, name, "shared", row, made, "1.0")])
            database.store_verdict(HERE, name, Verdict(3.0, tuned_us))
    for order in ("ab", "ba"):
        with Database(tmp_path / order) as merged:
            for name in order:
                with Database(tmp_path / name, read_only=True) as source:
                    merged.merge(source)
                    assert merged.merge(source) == 0, "a second time there is nothing new"
            assert look(merged) == {ROW.candidate: late}
            assert len(list(merged.rows())) == 3
            assert [merged.verdict(HERE, name).tuned_us for name in "ab"] == [1.0, 2.0]
    with Database(tmp_path / "a", read_only=True) as source:
        assert len(list(source.rows())) == 2


def test_adding_is_all_or_nothing(database):
    def records():
        yield Record(HERE, "w", "shared", ROW, 1.0, "")
        raise ValueError("the file ends here")

    with pytest.raises(ValueError, match="the file ends here"):
        database.add(records())
    assert list(database.rows()) == []
    database.store(HERE, "w", "shared", [ROW])


def test_pruning_deletes_what_is_old_or_behind(database):
    rows = [dataclasses.replace(ROW, candidate=f"c{i}", time_us=us) for i, us in enumerate([3.0, 1.0, None, 2.0])]
    for workload in "wv":
        database.add(Record(HERE, workload, "shared", row, 100.0 + i, "") for i, row in enumerate(rows))
    assert database.prune(before=102.0) == 4
    assert set(look(database)) == {"c2", "c3"}
    assert database.prune(best=1) == 2
    assert set(look(database)) == {"c3"}
    assert database.prune(before=1e9) == 2
    assert database.contexts() == []


SLOW_FILE_SYSTEM = """
import sqlite3
whole = sqlite3.connect
sqlite3.connect = lambda name, **options: whole(name + "&vfs=unix-dotfile", **options)
"""


def test_a_file_system_without_shared_memory_is_shared_all_the_same(path):
    command = [sys.executable, "-c", SLOW_FILE_SYSTEM + STORE_MANY, str(path)]
    processes = [subprocess.Popen([*command, str(n)]) for n in range(2)]
    assert [p.wait() for p in processes] == [0, 0]
    with Database(path, read_only=True) as database:
        assert database.contexts() == [(HERE, 40, 40)]
        assert database._rows("PRAGMA journal_mode") == [("delete",)]


def test_a_folder_that_is_read_only_can_be_read(path, monkeypatch):
    with Database(path) as database:
        database.store(HERE, "w", "shared", [ROW])
    whole = sqlite3.connect

    def connect(name, **options):
        if "immutable" not in name:
            raise sqlite3.OperationalError("unable to open database file")
        return whole(name, **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    with Database(path, read_only=True) as database:
        assert look(database) == {ROW.candidate: ROW}
    with pytest.raises(neo.ResourceError, match="unable to open"):
        Database(path)


def test_a_full_disk_is_one_clear_error_and_loses_nothing(database, path):
    database.store(HERE, "w", "shared", [ROW])
    pages = database._connection.execute("PRAGMA page_count").fetchone()[0]
    database._connection.execute(f"PRAGMA max_page_count = {pages}")
    many = [dataclasses.replace(ROW, candidate=f"{i} {'long ' * 50}") for i in range(200)]
    with pytest.raises(neo.ResourceError, match=r"^\[database\] .* disk is full - at "):
        database.store(HERE, "v", "shared", many)
    assert look(database) == {ROW.candidate: ROW}
    database._connection.execute("PRAGMA max_page_count = 100000")
    database.store(HERE, "v", "shared", many)
    assert len(look(database, workload="v")) == 200


def test_a_lock_that_stays_is_one_clear_error_and_one_that_goes_is_waited_for(path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("neo.tune.database"), "_BUSY_SECONDS", 0.2)
    with Database(path) as database:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(neo.ResourceError, match=r"^\[database\] .* locked - at "):
            database.store(HERE, "w", "shared", [ROW])
        assert look(database) == {}, "reading goes on"
        other.execute("COMMIT")
        other.close()
        database.store(HERE, "w", "shared", [ROW])
        assert look(database) == {ROW.candidate: ROW}
