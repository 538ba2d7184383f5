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

__all__ = ["Database", "Row", "Verdict", "default_path"]

# "neot": marks the file as ours; a schema of another version is not read.
_APPLICATION_ID = 0x6E656F74
_VERSION = 1
_BUSY_SECONDS = 30.0

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
  residence TEXT NOT NULL,
  candidate TEXT NOT NULL,
  routine TEXT NOT NULL,
  time_us REAL,
  estimate_us REAL NOT NULL,
  rounds INTEGER NOT NULL,
  failure TEXT NOT NULL,
  made REAL NOT NULL,
  PRIMARY KEY (context, workload, residence, candidate)
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


@dataclass(frozen=True)
class Row:
    """One measured time; `time_us` is None where the candidate could not be measured, `failure` says why."""

    candidate: str
    routine: str
    time_us: float | None
    estimate_us: float
    rounds: int
    failure: str = ""


@dataclass(frozen=True)
class Verdict:
    """What the default and the tuned module took, timed against each other."""

    default_us: float
    tuned_us: float


def default_path() -> Path:
    """``neo/tuning.db`` in the user's cache folder: ``$XDG_CACHE_HOME``, else ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return folder / "neo" / "tuning.db"


class Database:
    """An open database; several processes may use one file. Every write is committed at once.

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
            mode = "ro" if read_only else "rwc"
            uri = f"{self.path.absolute().as_uri()}?mode={mode}"
            connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        def numbers() -> tuple[int, int]:
            return (
                connection.execute("PRAGMA application_id").fetchone()[0],
                connection.execute("PRAGMA user_version").fetchone()[0],
            )

        tables = "SELECT count(*) FROM sqlite_master"
        if not self.read_only and numbers() == (0, 0) and connection.execute(tables).fetchone()[0] == 0:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have been first.
            if connection.execute(tables).fetchone()[0] == 0:
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")
        found = numbers()
        if found[0] != _APPLICATION_ID:
            msg = (
                "[database] the file must be a tuning database of neo. "
                f"Got another application's SQLite file - at {self.path}"
            )
            raise ResourceError(msg)
        if found[1] != _VERSION:
            msg = (
                f"[database] the database must be of this version. Got {found[1]}, expected {_VERSION} "
                f"- at {self.path}\nHint: give another path, or delete the file: it only holds measurements."
            )
            raise ResourceError(msg)
        if not self.read_only:
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")

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
        """What is stored for each (workload, residence), by candidate."""
        found: dict[tuple[str, str], dict[str, Row]] = {key: {} for key in keys}
        if self._connection is None:
            return found
        with self._errors():
            number = self._context(context, make=False)
            if number is None:
                return found
            query = (
                "SELECT candidate, routine, time_us, estimate_us, rounds, failure FROM measurements "
                "WHERE context = ? AND workload = (SELECT id FROM workloads WHERE text = ?) AND residence = ?"
            )
            for (workload, residence), rows in found.items():
                for row in self._connection.execute(query, (number, workload, residence)):
                    rows[row[0]] = Row(*row)
        return found

    def store(self, context: Context, workload: str, residence: str, rows: Sequence[Row]) -> None:
        """Keep the times of one workload's candidates, in place of earlier ones."""
        assert self._connection is not None
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                number = self._context(context, make=True)
                self._connection.execute("INSERT OR IGNORE INTO workloads (text) VALUES (?)", (workload,))
                select = "SELECT id FROM workloads WHERE text = ?"
                key = (number, self._connection.execute(select, (workload,)).fetchone()[0], residence)
                self._connection.executemany(
                    "INSERT OR REPLACE INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    [
                        (*key, r.candidate, r.routine, r.time_us, r.estimate_us, r.rounds, r.failure, time.time())
                        for r in rows
                    ],
                )
            except BaseException:
                self._connection.execute("ROLLBACK")
                self._contexts.clear()
                raise
            self._connection.execute("COMMIT")

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
        """Everything measured: context, workload, residence, row."""
        query = (
            "SELECT machine, kernels, target, threads, text, residence, candidate, routine, time_us, estimate_us, "
            "rounds, failure FROM measurements JOIN contexts ON contexts.id = context "
            "JOIN workloads ON workloads.id = workload ORDER BY contexts.id, text, residence, time_us"
        )
        for row in self._rows(query):
            yield Context(*row[:4]), row[4], row[5], Row(*row[6:])

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
        assert self._connection is not None
        with self._errors():
            before = self._connection.execute("SELECT count(*) FROM measurements").fetchone()[0]
            where = " OR ".join(f"{column} != ?" for column in keep) if keep else "1"
            self._connection.execute(f"DELETE FROM contexts WHERE {where}", tuple((keep or {}).values()))
            self._connection.execute("DELETE FROM workloads WHERE id NOT IN (SELECT workload FROM measurements)")
            after = self._connection.execute("SELECT count(*) FROM measurements").fetchone()[0]
            self._connection.execute("VACUUM")
        self._contexts.clear()
        return int(before - after)
