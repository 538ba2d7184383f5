"""Score a Parquet table that is too big for memory on Dask workers: ``python score_table.py MODEL IN.parquet OUT.parquet``.

The model takes rows of float32 and its first output is the score. Needs ``pip install distributed pyarrow``.
"""

import io
import sys
from collections import deque

import neo
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client


def score(module, path, group):
    """The scores of one row group, which the worker itself reads."""
    table = pq.ParquetFile(path).read_row_group(group)
    rows = np.stack([table[name].to_numpy() for name in table.column_names], axis=1)
    return module(rows.astype(np.float32))


def score_all(client, model, path, out):
    """Write the scores in the order of the rows, and return their number.

    A worker gets the module once. One that dies costs its row groups, which another worker scores again.
    """
    saved = io.BytesIO()
    neo.compile(model, threads=1).save(saved)
    module = client.submit(neo.load, saved.getvalue(), threads=1)
    most = 2 * len(client.scheduler_info()["workers"])  # what is in flight is all that is held
    waiting, count, writer = deque(), 0, None
    groups = iter(range(pq.ParquetFile(path).num_row_groups))
    while True:
        while len(waiting) < most and (group := next(groups, None)) is not None:
            waiting.append(client.submit(score, module, path, group))
        if not waiting:
            break
        scores = waiting.popleft().result()
        columns = scores.reshape(len(scores), -1).T
        table = pa.table({f"score{i}": column for i, column in enumerate(columns)})
        if writer is None:
            writer = pq.ParquetWriter(out, table.schema)
        writer.write_table(table)
        count += len(scores)
    if writer is not None:
        writer.close()
    return count


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with Client(threads_per_worker=1) as client:
        print(f"{score_all(client, *sys.argv[1:])} rows")
