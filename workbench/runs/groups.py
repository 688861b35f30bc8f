"""Groups on disk: one parquet file, one row a completion, written whole or not at all.

A file stands alone: every row carries its task (messages, tools and expected calls as JSON text), so that a group can
be read, scored and re-weighted years later without the code that made the task. Rows of a group are adjacent. The
columns are listed in :mod:`workbench.runs.rows`; the schema's version is in the file's metadata.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.runs.rows import OWN_COLUMNS, groups_from, rows_of, schema_of
from workbench.types import Group

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1
_MARK = b"workbench_groups"  # metadata key; its value is the schema version


def write_groups(
    path: str | os.PathLike[str], groups: Sequence[Group], *, extra: Mapping[str, Sequence[Any]] | None = None
) -> Path:
    """Write the groups to a parquet file; a reader sees the old file or the whole new one, never a part.

    ``extra`` adds columns of the caller's own, one value a completion (what :func:`extra_columns` gave when the file
    was read). Log-probabilities and entropies are kept as float32. Returns the path. Raises :class:`InputError` for
    a group without completions, a column of the wrong length, or one that would hide a column of ours.
    """
    import pyarrow.parquet as pq

    path = Path(path)
    table = _table(groups, extra or {})
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    os.close(handle)
    try:
        pq.write_table(table, name, compression="zstd")
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def read_groups(path: str | os.PathLike[str]) -> list[Group]:
    """The groups of a file written by :func:`write_groups`, equal to what was written (floats of tokens as float32).

    Columns we do not know are left alone (see :func:`extra_columns`). Raises :class:`InputError` for a file that is
    missing, torn, not ours, written by a newer schema, or whose groups are incomplete.
    """
    path = Path(path)
    columns = _columns(_checked_table(path))
    try:
        return list(groups_from(columns))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: a groups file with a damaged row ({type(error).__name__}: {error}).") from error


def extra_columns(path: str | os.PathLike[str]) -> dict[str, list[Any]]:
    """The columns of a groups file that are not ours, by name, one value a completion, in the order of its rows."""
    table = _checked_table(Path(path))
    dimensions = {name for row in _values(table.column("dimensions")) for name in row}
    ours = {*OWN_COLUMNS, *(f"{kind}_{name}" for name in dimensions for kind in ("score", "reason"))}
    return {name: table.column(name).to_pylist() for name in table.column_names if name not in ours}


def _table(groups: Sequence[Group], extra: Mapping[str, Sequence[Any]]) -> pa.Table:
    import pyarrow as pa

    rows = [row for index, group in enumerate(groups) for row in rows_of(index, group)]
    dimensions = list(dict.fromkeys(name for group in groups for name in group.dimensions))
    schema = schema_of(dimensions).with_metadata({_MARK: str(SCHEMA_VERSION).encode()})
    table = pa.Table.from_pydict({name: [row.get(name) for row in rows] for name in schema.names}, schema=schema)
    for name, values in extra.items():
        if name in schema.names:
            raise InputError(f"extra: column {name!r} is one of the workbench's own; give it another name.")
        if len(values) != len(rows):
            raise InputError(f"extra: column {name!r} needs {len(rows)} values (one a completion), got {len(values)}.")
        table = table.append_column(name, pa.array(values))
    return table


def _checked_table(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path}: there is no such file; write one with `workbench sample --out {path.name}`.")
    try:
        version = (pq.read_schema(path).metadata or {}).get(_MARK)
        table = None if version is None else pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        first_line = str(error).splitlines()[0]
        raise InputError(f"{path}: not a readable parquet file (torn, or another format): {first_line}") from error
    if table is None or version is None:
        raise InputError(f"{path}: a parquet file, but not one of groups; `workbench sample --out` writes those.")
    if not version.isdigit() or int(version) > SCHEMA_VERSION:
        found = version.decode(errors="replace")
        raise InputError(f"{path}: groups of schema {found}; this workbench reads up to {SCHEMA_VERSION}: update it.")
    if missing := [name for name in OWN_COLUMNS if name not in table.column_names]:
        raise InputError(f"{path}: a groups file without its column {missing[0]!r}.")
    return table


def _columns(table: pa.Table) -> dict[str, list[Any]]:
    return {name: _values(table.column(name)) for name in table.column_names}


def _values(column: pa.ChunkedArray) -> list[Any]:
    """``to_pylist``, with lists cut as tuples from one flat conversion (token columns are most of a file)."""
    import pyarrow as pa

    values: list[Any] = []
    for array in column.chunks:
        if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type)):
            values += array.to_pylist()
            continue
        flat, offsets = array.values, array.offsets.to_pylist()
        numeric = pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)
        items = flat.to_numpy(zero_copy_only=False).tolist() if numeric and not flat.null_count else flat.to_pylist()
        present = array.is_valid().to_pylist()
        values += [tuple(items[a:b]) if ok else None for a, b, ok in zip(offsets, offsets[1:], present, strict=False)]
    return values
