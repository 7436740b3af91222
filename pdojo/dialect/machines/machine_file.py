"""Machine descriptions in TOML files: reading, inheritance, and one message for each mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias, cast

from pdojo.dialect.functions import DTYPES, accumulation_function, has_atomic
from pdojo.dialect.intrinsic import Intrinsic
from pdojo.dialect.machines import FOLDER, shipped_machines
from pdojo.dialect.machines.intrinsic_file import intrinsic_to_json, read_intrinsic
from pdojo.dialect.machines.machine import Gpu, KindFacts, Machine
from pdojo.dialect.machines.matrix_load import MatrixLoad
from pdojo.dialect.machines.matrix_load_file import matrix_load_to_json, read_matrix_load
from pdojo.dialect.machines.measured import CopyRate, ProcessorMeasurements, ReadRate
from pdojo.dialect.names import is_machine_name
from pdojo.errors import UsageError
from pdojo.toml import COUNT, FLAG, count, each, listed, pairs, read_toml, table, word

Table: TypeAlias = Mapping[str, Any]
Known: TypeAlias = Callable[[str], Machine]
"""A function from names to machines. Raises UsageError for an unknown name."""

_FIELDS = {f.name: f for f in fields(Machine)}
_PARTS: Mapping[str, type[KindFacts | ProcessorMeasurements]] = {
    **{f.name: type(f.default) for f in fields(Machine) if isinstance(f.default, KindFacts)},
    "measured": ProcessorMeasurements,
}
"""Keys of tables with the facts of one kind of machine, or with measurements."""
_CODE = ("intrinsics", "matrix_loads")
"""Keys of tables of instructions with their code."""
_INHERITS = "inherits"
_WORD = re.compile("[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_UNTRUSTED = "untrusted"
"""Key of the JSON form for the instructions whose code must not run; absent if there are none."""


def read_machine(
    path: Path, known: Known, readers: tuple[Path, ...] = (), *, trusted: bool = False, alone: bool = False
) -> Machine:
    """The machine description in a file.

    It may inherit from a machine by name, which `known` looks up, and, unless `alone`, from another file. `readers` are
    the files that inherit from it.

    If `trusted`, the code of its intrinsics may run. Raises UsageError with the file, the key and the mistake.
    """
    given = read_toml(path, "machine file")
    _check_keys(path, given, (*_FIELDS, _INHERITS))
    values = {
        key: _value(path, key, value, trusted=trusted)
        for key, value in given.items()
        if key != _INHERITS and key not in _PARTS
    }
    if alone and str(given.get(_INHERITS, "")).endswith(".toml"):
        raise _error(path, _INHERITS, "this file may inherit from a machine by name only, not from another file")
    parent = _parent(path, given[_INHERITS], known, readers, trusted=trusted) if _INHERITS in given else None
    name = values.get("name")
    if name is None:
        raise _error(path, "name", f'missing; write name = "{path.stem}"')
    if not is_machine_name(name):
        raise _error(path, "name", f"'{name}' is no name of a machine: letters, digits, '_', '-' and '.'")
    if name in shipped_machines() and path.resolve().parent != FOLDER:
        raise _error(path, "name", f"'{name}' is a machine that pdojo brings; choose another name")
    if parent is not None:
        for key in _CODE:
            own = {i.name for i in values.get(key, ())}
            inherited = tuple(i for i in getattr(parent, key) if i.name not in own)
            values[key] = (*inherited, *values.get(key, ()))
        values = {**{key: getattr(parent, key) for key in _FIELDS}, **values}
    for key, part in _PARTS.items():
        inherited_part = part() if parent is None else getattr(parent, key)
        values[key] = replace(inherited_part, **_part(path, key, given.get(key, {})))
    for key, declared in _FIELDS.items():
        if key not in values and declared.default is MISSING and declared.default_factory is MISSING:
            example = {"bool": "false", "int": "1"}.get(str(declared.type), "[]")
            raise _error(path, key, f'missing; write {key} = {example} or inherit it: inherits = "x86-64-avx2"')
    return _checked(path, Machine(**values))


def _check_keys(path: Path, given: Table, known: Sequence[str], inside: str = "") -> None:
    for key in given:
        if key in known:
            continue
        home = next((name for name, part in _PARTS.items() if key in {f.name for f in fields(part)}), None)
        close = get_close_matches(key, known, 1)
        hint = f"did you mean '{close[0]}'?" if close else f"known keys are {', '.join(known)}"
        raise _error(path, inside + key, f"no such key; {f'it belongs in the table [{home}]' if home else hint}")


def _part(path: Path, key: str, value: object) -> dict[str, Any]:
    """The facts of one kind of machine in a file."""
    given = table(value)
    if given is None:
        raise _error(path, key, f"must be a table: begin it with [{key}]")
    declared = {f.name: str(f.type) for f in fields(_PARTS[key])}
    _check_keys(path, given, tuple(declared), f"{key}.")
    return {name: _read(path, f"{key}.{name}", declared[name], one) for name, one in given.items()}


def _error(path: Path, key: str, problem: str) -> UsageError:
    return UsageError(f"machine file '{path}': key '{key}': {problem}")


def _parent(path: Path, value: object, known: Known, readers: tuple[Path, ...], *, trusted: bool) -> Machine:
    """The description that a file inherits from: a machine by name, or a file in the same folder."""
    if not isinstance(value, str):
        raise _error(path, _INHERITS, "must be the name of a machine or of a file, in quotes")
    if not value.endswith(".toml"):
        try:
            return known(value)
        except UsageError as error:
            raise _error(path, _INHERITS, str(error)) from None
    try:
        own, parent = path.resolve(), (path.parent / value).resolve()
    except (OSError, ValueError):
        raise _error(path, _INHERITS, f"'{value}' is no path of a file") from None
    if parent in (*readers, own):
        circle = " inherits ".join(str(p.name) for p in (*readers, own, parent))
        raise _error(path, _INHERITS, f"the files inherit in a circle: {circle}")
    return read_machine(path.parent / value, known, (*readers, own), trusted=trusted)


def _value(path: Path, key: str, value: object, *, trusted: bool) -> Any:
    """The value of a key, converted to the type of the field with the key's name."""
    if key in _CODE:
        try:
            return _instructions(key, value, deferred=path.resolve().parent == FOLDER, trusted=trusted)
        except UsageError as error:
            raise _error(path, key, str(error)) from None
    return _read(path, key, str(_FIELDS[key].type), value)


def _read(path: Path, key: str, kind: str, value: object) -> Any:
    reader, wanted = _KINDS[kind]
    read = reader(value)
    if read is None:
        raise _error(path, key, f"must be {wanted}, not {_shown(value)}")
    return read


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}'" if isinstance(value, str) else str(value)


def _ascending(value: object) -> tuple[int, ...] | None:
    numbers = each(count, value)
    return tuple(numbers) if numbers is not None and 0 not in numbers and numbers == sorted(set(numbers)) else None


def _words(value: object) -> tuple[str, ...] | None:
    words = each(word, value)
    return None if words is None else tuple(sorted(set(words)))


def _lanes(value: object) -> dict[str, tuple[int, ...]] | None:
    rows = pairs(_ascending, value)
    return rows if rows is not None and all(d in DTYPES and 1 not in lanes for d, lanes in rows.items()) else None


def _instructions(key: str, value: object, *, deferred: bool, trusted: bool) -> tuple[Intrinsic | MatrixLoad, ...]:
    given = listed(value)
    if given is None:
        raise UsageError(f"must be tables: begin each with [[{key}]]")
    read = read_intrinsic if key == "intrinsics" else read_matrix_load
    found = tuple(read(one, deferred=deferred, trusted=trusted) for one in given)
    names = [i.name for i in found]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"there are two {key.replace('_', ' ')} '{name}'")
    return found


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _numbers(value: object) -> dict[str, float] | None:
    return pairs(_number, value)


_SIMPLE: dict[str, tuple[Callable[[object], Any], str]] = {
    "str": (word, "a text in quotes"),
    "bool": FLAG,
    "int": COUNT,
    "tuple[int, ...]": (_ascending, "a list of positive whole numbers, ascending"),
    "tuple[str, ...]": (_words, "a list of texts"),
    "float": (_number, "a number of at least 0"),
    "Mapping[str, float]": (_numbers, "a table of numbers of at least 0, such as exp = 1.2e9"),
    "Mapping[str, tuple[int, ...]]": (_lanes, "a table of lane counts of at least 2, ascending, such as f32 = [4, 8]"),
}
"""Per type of a field without records, the function that reads a value, and the words for a wrong value."""


def _records(kind: type[CopyRate | ReadRate]) -> Callable[[object], tuple[Any, ...] | None]:
    """A reader of a list of tables that have the fields of a record."""
    readers = {f.name: _SIMPLE[str(f.type)][0] for f in fields(kind)}

    def read(value: object) -> tuple[Any, ...] | None:
        rows = listed(value)
        found: list[Any] = []
        for row in rows or ():
            given = table(row)
            if given is None or given.keys() != readers.keys():
                return None
            values = {name: readers[name](one) for name, one in given.items()}
            if None in values.values():
                return None
            found.append(kind(**values))
        return None if rows is None else tuple(found)

    return read


_KINDS: dict[str, tuple[Callable[[object], Any], str]] = {
    **_SIMPLE,
    "tuple[CopyRate, ...]": (
        _records(CopyRate),
        "a list of tables: threads, footprint, nontemporal, streams, rate",
    ),
    "tuple[ReadRate, ...]": (_records(ReadRate), "a list of tables: threads, footprint, streams, prefetch, rate"),
}
"""Per type of a field, the function that reads a value, and the words for a wrong value."""


def _checked(path: Path, described: Machine) -> Machine:
    """The machine. Raises UsageError if its numbers contradict each other."""
    _check_words(path, described)
    if described.threads < 1:
        raise _error(path, "threads", "must be at least 1: a kernel runs on some thread")
    for key in ("fma_pipes", "load_pipes", "fma_latency"):
        if not getattr(described.cpu, key):
            raise _error(path, f"cpu.{key}", "must be at least 1; leave it out if it is unknown")
    powers = {
        "cache_line": described.cache_line,
        "gpu.warp_size": described.gpu.warp_size,
        "cpu.pipe_bytes": described.cpu.pipe_bytes,
    }
    for key, number in powers.items():
        if number & (number - 1):
            raise _error(path, key, f"must be a power of two, not {number}")
    _check_atomics(path, described.gpu)
    if not described.cache_bytes:
        raise _error(path, "cache_bytes", "must name at least one memory that data may stay in")
    if described.gpu.warp_size and described.gpu.block_threads % described.gpu.warp_size:
        raise _error(path, "gpu.block_threads", f"must be a multiple of warp_size = {described.gpu.warp_size}")
    _check_warps(path, described)
    core = described.snitch
    for one, other in (("stream_registers", "stream_dims"), ("frep_instructions", "frep_trips")):
        if bool(getattr(core, one)) != bool(getattr(core, other)):
            missing, there = (one, other) if not getattr(core, one) else (other, one)
            raise _error(path, f"snitch.{missing}", f"must not be 0 where the machine has '{there}'")
    return described


def _check_words(path: Path, described: Machine) -> None:
    """Raise UsageError for words that compilers would take for several arguments, or for other ones."""
    rows = {
        "architecture": [described.architecture],
        "processor": [described.processor],
        "features": described.features,
    }
    for key, words in rows.items():
        wrong = next((word for word in words if word and not _WORD.fullmatch(word)), None)
        if wrong is not None:
            raise _error(path, key, f"{wrong[:60]!r} is no word of letters, digits, '_', '.', '+' and '-'")


def _check_atomics(path: Path, gpu: Gpu) -> None:
    """Raise UsageError for an atomic operation that no program or device code has, and for an unlisted flushing one."""
    for name in gpu.atomics:
        operation, _, dtype = name.partition(".")
        spelling = {"add": "+", "mul": "*"}.get(operation, operation)
        if operation in ("+", "*") or dtype not in DTYPES or accumulation_function(spelling, dtype) is None:
            raise _error(path, "gpu.atomics", f"'{name}' is no accumulation; write add.f32, max.i32, umin.i64 ...")
        if not has_atomic(name):
            raise _error(path, "gpu.atomics", f"device code has no atomic operation '{name}'")
    for name in sorted({*gpu.flushing_atomics} - {*gpu.atomics}):
        raise _error(path, "gpu.flushing_atomics", f"'{name}' is not among gpu.atomics")


def _check_warps(path: Path, described: Machine) -> None:
    """Raise UsageError for an instruction whose threads are not whole warps, and for two instructions of one name."""
    whole = described.gpu.warp_size
    for load in described.matrix_loads:
        if load.name in {i.name for i in described.intrinsics}:
            raise _error(path, "matrix_loads", f"an intrinsic is called '{load.name}', too; choose another name")
    wrong = [
        ("intrinsics", "intrinsic ", i, i.warps)
        for i in described.intrinsics
        if i.threads not in (0, i.warps * whole) or not i.warps
    ]
    wrong += [("matrix_loads", "", i, 1) for i in described.matrix_loads if i.threads != whole]
    for key, kind, one, warps in wrong:
        wanted = "a whole warp" if warps == 1 else f"{warps} whole warps ('warps')"
        problem = f"{kind}'{one.name}': 'threads' must be {wanted}, gpu.warp_size = {whole}, not {one.threads}"
        raise _error(path, key, problem)


def machine_to_json(described: Machine) -> dict[str, Any]:
    """A machine description as a JSON object."""
    values = {key: _plain(getattr(described, key)) for key in _FIELDS if key not in (*_CODE, *_PARTS)}
    values |= {
        key: {f.name: _plain(getattr(getattr(described, key), f.name)) for f in fields(part)}
        for key, part in _PARTS.items()
    }
    untrusted = [i.name for i in (*described.intrinsics, *described.matrix_loads) if not i.trusted]
    data = {**values, "intrinsics": [intrinsic_to_json(i) for i in described.intrinsics]}
    if described.matrix_loads:
        data["matrix_loads"] = [matrix_load_to_json(i) for i in described.matrix_loads]
    return {**data, _UNTRUSTED: untrusted} if untrusted else data


_GPU_FACTS = ("warp_size", "block_threads", "shared_bytes", "multiprocessors", "async_copy_bytes")
"""Facts of graphics processors that every version of the database stores."""


def machine_facts(described: Machine) -> dict[str, Any]:
    """The facts that identify a machine in a database: all but description, backend, and figures for estimates.

    The facts of all kinds of machine stand side by side, as in databases of earlier versions.
    """
    data = machine_to_json(described)
    del data["description"], data["backend"], data["measured"]
    if not data["aligned_vectors"]:
        # Stored machines may predate this fact.
        del data["aligned_vectors"]
    data["cpu"] = {key: value for key, value in data["cpu"].items() if not isinstance(value, float)}
    data["gpu"] = {key: data["gpu"][key] for key in _GPU_FACTS}
    for later in ("registers", "atomics", "flushing_atomics"):
        if fact := getattr(described.gpu, later):
            data["gpu"][later] = _plain(fact)
    for key in _PARTS.keys() & data.keys():
        data |= data.pop(key)
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in cast("Table", value).items()}
    if isinstance(value, CopyRate | ReadRate):
        return asdict(value)
    return [_plain(one) for one in cast("tuple[Any, ...]", value)] if isinstance(value, tuple) else value


def machine_from_json(data: Table) -> Machine:
    """The machine description that `machine_to_json` wrote; for other processes of pdojo, not for stored data."""
    simple = [key for key in data if key not in (*_CODE, _UNTRUSTED, *_PARTS)]
    values = {key: _KINDS[str(_FIELDS[key].type)][0](data[key]) for key in simple}
    for key, part in _PARTS.items():
        kinds = {f.name: _KINDS[str(f.type)][0] for f in fields(part)}
        values[key] = part(**{name: kinds[name](value) for name, value in data[key].items()})
    untrusted = data.get(_UNTRUSTED, ())
    for key in _CODE:
        found = _instructions(key, data.get(key, ()), deferred=True, trusted=True)
        values[key] = tuple(replace(i, trusted=i.name not in untrusted) for i in found)
    return Machine(**values)
