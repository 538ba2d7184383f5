"""Processes that are killed while they tune into one database."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from neo.tune import Database

from . import killed


def kill_many(path, kills, most_seconds, seed):
    """Keep two processes tuning, kill one of them at a random moment, and so on; all that they said was kept."""
    draw = random.Random(seed)
    told = []
    files = []
    processes = [None, None]

    def begin(slot):
        file = path.with_name(f"told{len(files)}.txt")
        files.append(file)
        with file.open("w") as out:
            processes[slot] = subprocess.Popen([sys.executable, killed.__file__, str(path)], stdout=out)

    def has_begun(file):
        return file.stat().st_size > 0

    begun = {}
    for slot in (0, 1):
        begin(slot)
        begun[slot] = files[-1]
    try:
        for kill in range(kills):
            slot = kill % 2
            while not has_begun(begun[slot]) and kill % 5:
                assert processes[slot].poll() is None, "a process ended by itself"
                time.sleep(0.005)
            # One in five at any moment of its start, the others in the middle of their work.
            time.sleep(draw.uniform(0, most_seconds))
            assert processes[slot].poll() is None, "a process ended by itself"
            processes[slot].kill()
            processes[slot].wait()
            # In this order: the other process goes on.
            told = [line for file in files for line in whole_lines(file)]
            with Database(path) as database:
                kept = {f"{w}\t{r}\t{row.candidate}" for _, w, r, row in database.rows()}
            assert not set(told) - kept, f"kill {kill} lost what was kept"
            if kill + 2 < kills:
                begin(slot)
                begun[slot] = files[-1]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return told


def whole_lines(file):
    text = Path(file).read_text()
    return text[: text.rfind("\n") + 1].splitlines()


def check(path, kills, most_seconds, seed=0):
    told = kill_many(path, kills, most_seconds, seed)
    assert told, "nothing was ever kept"
    with Database(path) as database:
        rows = list(database.rows())
        assert rows
        done = killed.tune(0, database)
        assert done.measured == 0, "the first model was done, and stays done"
        assert done.stored > 0
        # The last that anybody began goes on where it was.
        count = len(rows)
        k = 0
        while killed.tune(k, database).measured == 0:
            k += 1
        assert len(list(database.rows())) > count


def test_kills_lose_nothing_and_tuning_goes_on(path):
    check(path, 6, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_ten_kills_at_any_moment_lose_nothing_and_tuning_goes_on(path, seed):
    check(path, 10, 0.5, seed)
