"""The tuning database: measured times by workload, candidate and context, in one SQLite file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from neo.errors import ResourceError
from neo.tune.machine import Context
from neo.tune.old_names import current_candidate, current_routine
from neo.version import __version__

__all__ = ["Database", "Hint", "Record", "Row", "Verdict", "default_path"]

# "neot": marks the file as ours. A schema of an older version is migrated, one of a newer version is not read.
_APPLICATION_ID = 0x6E656F74
_VERSION = 3
_BUSY_SECONDS = 30.0
# Contexts that are asked for hints: every build that was ever used has one.
_ASKED = 4

_SCHEMA = """
CREATE TABLE contexts (
  id INTEGER PRIMARY KEY,
  machine TEXT NOT NULL, kernels TEXT NOT NULL, target TEXT NOT NULL, threads INTEGER NOT NULL,
  UNIQUE (machine, kernels, target, threads)
);
CREATE TABLE workloads (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE measurements (
  context INTEGER NOT NULL REFERENCES contexts(id) ON DELETE CASCADE,
  workload INTEGER NOT NULL REFERENCES workloads(id) ON DELETE CASCADE,
  cache_level TEXT NOT NULL,
  candidate TEXT NOT NULL,
  routine TEXT NOT NULL,
  time_us REAL,
  estimate_us REAL NOT NULL,
  rounds INTEGER NOT NULL,
  failure TEXT NOT NULL,
  made REAL NOT NULL,
  spread_us REAL,
  version TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (context, workload, cache_level, candidate)
) WITHOUT ROWID;
CREATE TABLE verdicts (
  context INTEGER NOT NULL REFERENCES contexts(id) ON DELETE CASCADE,
  digest TEXT NOT NULL,
  default_us REAL NOT NULL,
  tuned_us REAL NOT NULL,
  made REAL NOT NULL,
  PRIMARY KEY (context, digest)
) WITHOUT ROWID;
"""
# From each older version to the next.
_MIGRATIONS = {
    1: """
ALTER TABLE measurements ADD COLUMN spread_us REAL;
ALTER TABLE measurements ADD COLUMN version TEXT NOT NULL DEFAULT '';
""",
    2: """
ALTER TABLE measurements RENAME COLUMN residence TO cache_level;
UPDATE measurements SET routine = current_routine(routine), candidate = current_candidate(candidate)
""",
}
# Views that make a file of an older version, which may not be written, look like one of this version.
_RENAMED = (
    "context, workload, residence AS cache_level, current_candidate(candidate) AS candidate, "
    "current_routine(routine) AS routine, time_us, estimate_us, rounds, failure, made"
)
_VIEWS = {
    1: f"CREATE TEMP VIEW measurements AS SELECT {_RENAMED}, NULL AS spread_us, '' AS version FROM main.measurements",
    2: f"CREATE TEMP VIEW measurements AS SELECT {_RENAMED}, spread_us, version FROM main.measurements",
}

_ROW = "candidate, routine, time_us, estimate_us, rounds, failure, spread_us"
_INSERT = (
    "INSERT INTO measurements (context, workload, cache_level, candidate, routine, time_us, estimate_us, rounds, "
    "failure, made, spread_us, version) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT (context, workload, cache_level, candidate) DO UPDATE SET "
    "routine = excluded.routine, time_us = excluded.time_us, estimate_us = excluded.estimate_us, "
    "rounds = excluded.rounds, failure = excluded.failure, made = excluded.made, spread_us = excluded.spread_us, "
    "version = excluded.version"
)


@dataclass(frozen=True)
class Row:
    """One measured time; `time_us` is None where the candidate could not be measured, `failure` says why.

    `spread_us` is from the lower to the upper quartile of its rounds; None where that is not known.
    """

    candidate: str
    routine: str
    time_us: float | None
    estimate_us: float
    rounds: int
    failure: str = ""
    spread_us: float | None = None


@dataclass(frozen=True)
class Record:
    """A row with all that it is found by; `made` in seconds since 1970, `version` neo's."""

    context: Context
    workload: str
    cache_level: str
    row: Row
    made: float
    version: str


@dataclass(frozen=True)
class Hint:
    """What a candidate took in another context: on another machine, or by another build."""

    time_us: float
    context: Context


@dataclass(frozen=True)
class Verdict:
    """What the default, the tuned and other modules took, timed against each other; the others are not stored."""

    default_us: float
    tuned_us: float
    others_us: tuple[float, ...] = ()


def default_path() -> Path:
    """``neo/tuning.db`` in the user's cache folder: ``$XDG_CACHE_HOME``, else ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return folder / "neo" / "tuning.db"


class Database:
    """An open database; several processes may use one file. Every write is committed at once.

    The journal is a write-ahead log where the file system has shared memory, else a rollback journal.

    Parameters
    ----------
    path : path
        Made where it is missing, with its folder, unless `read_only`.
    read_only : bool
        Nothing is written; a missing file is an empty database.

    Raises
    ------
    ResourceError
        The file cannot be read or written, or is no tuning database of this version of neo; from every method.
    """

    def __init__(self, path: str | PathLike[str], *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._connection: sqlite3.Connection | None = None
        self._contexts: dict[Context, int] = {}
        if read_only and not self.path.exists():
            return
        with self._errors():
            if not read_only:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = self._open()

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect("mode=ro" if self.read_only else "mode=rwc")
        except sqlite3.OperationalError:
            # A reader of a write-ahead log makes files beside it, which a folder that is read only does not let it.
            if not self.read_only or self.path.with_name(self.path.name + "-wal").exists():
                raise
            return self._connect("mode=ro&immutable=1")

    def _connect(self, mode: str) -> sqlite3.Connection:
        uri = f"{self.path.absolute().as_uri()}?{mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        def numbers() -> tuple[int, int]:
            return (
                connection.execute("PRAGMA application_id").fetchone()[0],
                connection.execute("PRAGMA user_version").fetchone()[0],
            )

        def run(script: str, to: int) -> None:
            for statement in script.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {to}")

        tables = "SELECT count(*) FROM sqlite_master"
        if not self.read_only and numbers() == (0, 0) and connection.execute(tables).fetchone()[0] == 0:
            _use_write_ahead_log(connection)
            with _transaction(connection):
                # Another process may have been first.
                if connection.execute(tables).fetchone()[0] == 0:
                    run(_SCHEMA, _VERSION)
                    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        application, version = numbers()
        if application != _APPLICATION_ID:
            msg = (
                "[database] the file must be a tuning database of neo. "
                f"Got another application's SQLite file - at {self.path}"
            )
            raise ResourceError(msg)
        if version != _VERSION and version not in _MIGRATIONS:
            msg = (
                f"[database] the database must be of this version. Got {version}, expected {_VERSION} "
                f"- at {self.path}\nHint: give another path, or delete the file: it only holds measurements."
            )
            raise ResourceError(msg)
        if version != _VERSION:
            connection.create_function("current_routine", 1, current_routine)
            connection.create_function("current_candidate", 1, current_candidate)
        if self.read_only:
            if version != _VERSION:
                connection.execute(_VIEWS[version])
            return
        # A damaged file is left as it is: it may be repaired.
        (state,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            msg = f"[database] the tuning database must be whole. Got {state} - at {self.path}"
            raise ResourceError(msg)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
        if version != _VERSION:
            with _transaction(connection):
                while (version := numbers()[1]) != _VERSION:
                    run(_MIGRATIONS[version], version + 1)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, ResourceError):
                raise
            msg = (
                f"[database] the tuning database must be readable{'' if self.read_only else ' and writable'}. "
                f"Got {error} - at {self.path}\nHint: give the path of a database that neo made, or of no file yet."
            )
            raise ResourceError(msg) from error

    def close(self) -> None:
        """Close the file; closing again does nothing."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _context(self, context: Context, *, make: bool) -> int | None:
        assert self._connection is not None
        if context not in self._contexts:
            key = (context.machine, context.kernels, context.target, context.threads)
            query = "SELECT id FROM contexts WHERE machine = ? AND kernels = ? AND target = ? AND threads = ?"
            row = self._connection.execute(query, key).fetchone()
            if row is None and make:
                insert = "INSERT OR IGNORE INTO contexts (machine, kernels, target, threads) VALUES (?, ?, ?, ?)"
                self._connection.execute(insert, key)
                row = self._connection.execute(query, key).fetchone()
            if row is None:
                return None
            self._contexts[context] = int(row[0])
        return self._contexts[context]

    def lookup(self, context: Context, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Row]]:
        """What is stored for each (workload, cache level), by candidate."""
        found: dict[tuple[str, str], dict[str, Row]] = {key: {} for key in keys}
        if self._connection is None:
            return found
        with self._errors():
            number = self._context(context, make=False)
            if number is None:
                return found
            query = (
                f"SELECT {_ROW} FROM measurements "
                "WHERE context = ? AND workload = (SELECT id FROM workloads WHERE text = ?) AND cache_level = ?"
            )
            for (workload, cache_level), rows in found.items():
                for row in self._connection.execute(query, (number, workload, cache_level)):
                    rows[row[0]] = Row(*row)
        return found

    def hints(self, context: Context, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[str, Hint]]:
        """What is stored for each (workload, cache level) in other contexts, by candidate.

        The nearest few contexts are asked: this machine's earlier builds, then machines that run the same instruction
        set on as many threads; of equals, the latest. The first that has a candidate counts, and of its times that
        with constants in the same place.
        """
        found: dict[tuple[str, str], dict[str, Hint]] = {}
        if self._connection is None:
            return found
        query = (
            "SELECT candidate, time_us FROM measurements WHERE context = ? "
            "AND workload = (SELECT id FROM workloads WHERE text = ?) AND time_us IS NOT NULL "
            "ORDER BY cache_level != ?"
        )
        with self._errors():
            others = [
                (number, Context(*other))
                for number, *other in self._connection.execute(
                    "SELECT id, machine, kernels, target, threads FROM contexts"
                )
            ]
            others = [(number, other) for number, other in others if other != context]
            others.sort(key=lambda entry: (_nearness(context, entry[1]), entry[0]), reverse=True)
            for workload, cache_level in keys:
                hints: dict[str, Hint] = {}
                for number, other in others[:_ASKED]:
                    for candidate, us in self._connection.execute(query, (number, workload, cache_level)):
                        hints.setdefault(candidate, Hint(us, other))
                if hints:
                    found[workload, cache_level] = hints
        return found

    def store(self, context: Context, workload: str, cache_level: str, rows: Sequence[Row]) -> None:
        """Keep the times of one workload's candidates, in place of earlier ones."""
        now = time.time()
        self._put((Record(context, workload, cache_level, row, now, __version__) for row in rows), "")

    def add(self, records: Iterable[Record]) -> int:
        """Keep records of another database or machine, all or none; returns how many were new, or newer than ours."""
        return self._put(records, " WHERE excluded.made > measurements.made")

    def _put(self, records: Iterable[Record], where: str) -> int:
        connection = self._connection
        assert connection is not None
        workloads: dict[str, int] = {}

        def number(text: str) -> int:
            if text not in workloads:
                connection.execute("INSERT OR IGNORE INTO workloads (text) VALUES (?)", (text,))
                (row,) = connection.execute("SELECT id FROM workloads WHERE text = ?", (text,))
                workloads[text] = int(row[0])
            return workloads[text]

        count = 0
        with self._errors():
            try:
                with _transaction(connection):
                    for r in records:
                        row = r.row
                        key = (self._context(r.context, make=True), number(r.workload), r.cache_level)
                        told = (row.candidate, row.routine, row.time_us, row.estimate_us, row.rounds, row.failure)
                        count += connection.execute(
                            _INSERT + where, (*key, *told, r.made, row.spread_us, r.version)
                        ).rowcount
            except BaseException:
                self._contexts.clear()
                raise
        return count

    def merge(self, other: Database) -> int:
        """Keep what another database holds, of two measurements the later; returns how many were new or newer."""
        count = self.add(other.records())
        query = "SELECT machine, kernels, target, threads, digest, default_us, tuned_us, verdicts.made FROM verdicts "
        rows = other._rows(query + "JOIN contexts ON contexts.id = context")
        assert self._connection is not None
        with self._errors(), _transaction(self._connection):
            for *context, digest, default_us, tuned_us, made in rows:
                self._connection.execute(
                    "INSERT INTO verdicts VALUES (?, ?, ?, ?, ?) ON CONFLICT (context, digest) DO UPDATE SET default_us = "
                    "excluded.default_us, tuned_us = excluded.tuned_us, made = excluded.made "
                    "WHERE excluded.made > verdicts.made",
                    (self._context(Context(*context), make=True), digest, default_us, tuned_us, made),
                )
        return count

    def verdict(self, context: Context, digest: str) -> Verdict | None:
        """How the default and the tuned selection of a problem compared, where they were."""
        if self._connection is None:
            return None
        with self._errors():
            query = "SELECT default_us, tuned_us FROM verdicts WHERE context = ? AND digest = ?"
            row = self._connection.execute(query, (self._context(context, make=False), digest)).fetchone()
        return None if row is None else Verdict(*row)

    def store_verdict(self, context: Context, digest: str, verdict: Verdict) -> None:
        """Keep how they compared."""
        assert self._connection is not None
        with self._errors():
            self._connection.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?, ?, ?)",
                (self._context(context, make=True), digest, verdict.default_us, verdict.tuned_us, time.time()),
            )

    def contexts(self) -> list[tuple[Context, int, int]]:
        """Each context with its workloads and measurements."""
        query = (
            "SELECT machine, kernels, target, threads, count(DISTINCT workload), count(workload) "
            "FROM contexts LEFT JOIN measurements ON context = id GROUP BY id ORDER BY id"
        )
        return [(Context(*row[:4]), row[4], row[5]) for row in self._rows(query)]

    def rows(self) -> Iterator[tuple[Context, str, str, Row]]:
        """Everything measured: context, workload, cache level, row."""
        for record in self.records():
            yield record.context, record.workload, record.cache_level, record.row

    def records(self) -> Iterator[Record]:
        """Everything measured, with when and by which version."""
        if self._connection is None:
            return
        query = (
            f"SELECT machine, kernels, target, threads, text, cache_level, made, version, {_ROW} "
            "FROM measurements JOIN contexts ON contexts.id = context "
            "JOIN workloads ON workloads.id = workload ORDER BY contexts.id, text, cache_level, time_us"
        )
        with self._errors():
            for row in self._connection.execute(query):
                yield Record(Context(*row[:4]), row[4], row[5], Row(*row[8:]), row[6], row[7])

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        with self._errors():
            return self._connection.execute(query).fetchall()

    def clear(self, *, keep: Mapping[str, str] | None = None) -> int:
        """Delete measurements, and give back their space.

        Parameters
        ----------
        keep : mapping, optional
            Columns of contexts (``kernels``, ``machine``) to the value whose rows stay; None: everything goes.

        Returns
        -------
        int
            How many were deleted.
        """
        where = " OR ".join(f"{column} != ?" for column in keep) if keep else "1"
        return self._delete([(f"DELETE FROM contexts WHERE {where}", tuple((keep or {}).values()))])

    def prune(self, *, before: float | None = None, best: int | None = None) -> int:
        """Delete measurements that are old, or behind, and give back their space; returns how many.

        Parameters
        ----------
        before : float, optional
            Seconds since 1970: older ones go, and older comparisons of modules.
        best : int, optional
            Of each workload, context and place, only so many of the fastest stay.
        """
        statements: list[tuple[str, tuple[object, ...]]] = []
        if before is not None:
            statements += [(f"DELETE FROM {table} WHERE made < ?", (before,)) for table in ("measurements", "verdicts")]
        if best is not None:
            ranked = (
                "SELECT context, workload, cache_level, candidate, row_number() OVER (PARTITION BY context, workload, "
                "cache_level ORDER BY time_us IS NULL, time_us, candidate) AS place FROM measurements"
            )
            keys = "(context, workload, cache_level, candidate)"
            behind = f"SELECT context, workload, cache_level, candidate FROM ({ranked}) WHERE place > ?"
            statements.append((f"DELETE FROM measurements WHERE {keys} IN ({behind})", (best,)))
        unused = "SELECT context FROM measurements UNION SELECT context FROM verdicts"
        return self._delete([*statements, (f"DELETE FROM contexts WHERE id NOT IN ({unused})", ())])

    def _delete(self, statements: Sequence[tuple[str, tuple[object, ...]]]) -> int:
        connection = self._connection
        assert connection is not None
        with self._errors():
            with _transaction(connection):
                before = connection.execute("SELECT count(*) FROM measurements").fetchone()[0]
                for statement, values in statements:
                    connection.execute(statement, values)
                connection.execute("DELETE FROM workloads WHERE id NOT IN (SELECT workload FROM measurements)")
                after = connection.execute("SELECT count(*) FROM measurements").fetchone()[0]
            connection.execute("VACUUM")
        self._contexts.clear()
        return int(before - after)


def _nearness(context: Context, other: Context) -> tuple[bool, bool]:
    alike = (other.target, other.threads) == (context.target, context.threads)
    return other.machine == context.machine, alike


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Where that is impossible (no shared memory, as on network file systems), the rollback journal stays."""
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")
