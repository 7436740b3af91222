"""Instructions that load matrices from shared memory: machine files, and which operands they fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pdojo.backends.gpu.spelling import CudaSpelling
from pdojo.backends.gpu.targets import device_text
from pdojo.dialect.machines.fragment import Fragment, fragment
from pdojo.dialect.machines.machine_file import machine_facts, machine_from_json, machine_to_json
from pdojo.dialect.machines.matrix_load import MatrixLoad, rows_of
from pdojo.dialect.machines.pattern import pattern_of
from pdojo.dialect.machines.registry import machine
from pdojo.dialect.notation import parse_notation
from pdojo.errors import LoweringError, UsageError

NVIDIA = machine("nvidia-sm90")
PLAIN, TRANSPOSED = NVIDIA.matrix_loads


def table(**values: str) -> str:
    rows = {
        "name": "'f'",
        "shape": "[4, 4]",
        "element_bytes": "2",
        "matrices": "[1]",
        "threads": "4",
        "fragment": "'{0}, {1}'",
        "templates": "{}",
        **values,
    }
    return "[[matrix_loads]]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items() if value)


MISTAKES = {
    "no list": ("matrix_loads = 3\n", "must be tables: begin each with [[matrix_loads]]"),
    "no table": ("matrix_loads = [3]\n", "must be tables: begin each with [[matrix_loads]]"),
    "no name": (table(name=""), "every instruction needs a name of letters, digits and _"),
    "unknown key": (table(shap="[4, 4]"), "'f': no such key 'shap'; did you mean 'shape'?"),
    "far key": (table(xyzzy="1"), "'f': no such key 'xyzzy'; known keys are name, shape,"),
    "no shape": (table(shape=""), "'f': 'shape' must be two positive whole numbers"),
    "three dimensions": (table(shape="[4, 2, 2]"), "'f': 'shape' must be two positive whole numbers"),
    "no rows": (table(shape="[0, 4]"), "'f': 'shape' must be two positive whole numbers"),
    "no bytes": (table(element_bytes="0"), "'f': 'element_bytes' must be a positive whole number"),
    "threads": (table(threads="true"), "'f': 'threads' must be a positive whole number, the threads of a warp"),
    "no matrices": (table(matrices="[]"), "'f': 'matrices' must be how many matrices it may load, ascending"),
    "descending": (table(matrices="[2, 1]"), "'f': 'matrices' must be how many matrices it may load, ascending"),
    "many rows": (table(matrices="[1, 2]"), "'f': 2 matrices have 8 rows, whose addresses 4 threads give"),
    "odd rows": (table(shape="[3, 4]"), "'f': 1 matrices have 3 rows, whose addresses 4 threads give"),
    "odd bytes": (table(shape="[4, 3]"), "'f': rows must have a power of two of bytes, not 6"),
    "no fragment": (table(fragment=""), "'f': 'fragment' must be a text, 'lane, slot' over row and element"),
    "collision": (table(fragment="'{0}, {1}//2'"), "'f': elements [0, 0] and [0, 1] would both be in lane 0, slot 0"),
    "templates": (table(templates="3"), "'f': 'templates' must be a table of texts"),
    "backend": (table(templates="{ cud = '' }"), "'f': no backend is called 'cud'; templates are for llvm, c, cuda"),
    "twice": (table() + table(), "there are two matrix loads 'f'"),
    "no warp": (table(threads="8", fragment="'{0}*2+{1}//2, {1}%2'"), "'threads' must be a whole warp, gpu.warp_size"),
    "taken": (table(name="'toy_mma'"), "an intrinsic is called 'toy_mma', too; choose another name"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake(case: str, tmp_path: Path) -> None:
    text, expected = MISTAKES[case]
    path = tmp_path / "m.toml"
    path.write_text(f'inherits = "toy-gpu"\nname = "m"\n{text}')
    with pytest.raises(UsageError) as caught:
        machine(str(path))
    assert str(caught.value).startswith(f"machine file '{path}': key 'matrix_loads': ")
    assert expected in str(caught.value)


def test_files_inherit_and_replace(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(
        'inherits = "nvidia-sm90"\nname = "m"\n'
        + table(name="'ldmatrix'", threads="32", shape="[8, 8]").replace("{0}, {1}", "{0}*4 + {1}//2, {1}%2")
    )
    found = machine(str(path)).matrix_loads
    assert [(load.name, load.matrices, load.trusted) for load in found] == [
        ("ldmatrix_trans", (1, 2, 4), True),
        ("ldmatrix", (1,), False),
    ]
    read = machine(str(path))
    assert machine_from_json(json.loads(json.dumps(machine_to_json(read)))) == read
    assert machine_facts(read)["matrix_loads"]
    assert "matrix_loads" not in machine_facts(machine("amd-gfx942"))


def operand(unit: str, name: str) -> Fragment:
    (intrinsic,) = (i for i in NVIDIA.intrinsics if i.name == unit)
    return pattern_of(intrinsic).fragments[name]


FITTING = [
    # load, operand, width, matrices, the dimension that rows run along
    (PLAIN, ("mma_16x8x16_bf16", "a"), 2, 4, 1),
    (PLAIN, ("mma_16x8x16_bf16", "b"), 2, 2, 0),
    (PLAIN, ("mma_16x8x8_tf32", "a"), 4, 4, 1),
    (PLAIN, ("mma_16x8x8_tf32", "b"), 4, 2, 0),
    (TRANSPOSED, ("mma_16x8x16_bf16", "a"), 2, 4, 0),
    (TRANSPOSED, ("mma_16x8x16_bf16", "b"), 2, 2, 1),
]


@pytest.mark.parametrize(("load", "operand_of", "width", "matrices", "along"), FITTING)
def test_rows(load: MatrixLoad, operand_of: tuple[str, str], width: int, matrices: int, along: int) -> None:
    """Rows are those of the operand, along one of its dimensions, and the threads get what they hold."""
    held = operand(*operand_of)
    found = rows_of(load, held, width, 0, matrices)
    assert found is not None
    assert found.slots == held.slots
    across = 1 - along
    assert found.offsets == tuple(tuple(k if d == along else 0 for d in (0, 1)) for k in range(16 // width))
    rows = [
        [tuple(e.evaluate([lane]) for e in element) for element in found.elements(0, [32])]
        for lane in range(8 * matrices)
    ]
    assert sorted(e for row in rows for e in row) == sorted(e for lane in held.places for e in lane)
    assert all(len({element[across] for element in row}) == 1 for row in rows)
    # What the threads get: register m of lane l is of row l / 4 of matrix m, or of column l / 4.
    each = 4 // width
    for lane, places in enumerate(held.places):
        for slot, element in enumerate(places):
            matrix, number = divmod(slot, each)
            if load is PLAIN:
                assert rows[8 * matrix + lane // 4][lane % 4 * each + number] == element
            else:
                assert rows[8 * matrix + lane % 4 * 2 + number][lane // 4] == element


@pytest.mark.parametrize(
    ("load", "operand_of", "width"),
    [
        (TRANSPOSED, ("mma_16x8x8_tf32", "a"), 4),  # an element of 4 bytes would be torn apart
        (TRANSPOSED, ("mma_16x8x16_bf16", "c"), 4),
        (PLAIN, ("mma_16x8x16_bf16", "a"), 1),
        (PLAIN, ("mma_16x8x16_bf16", "a"), 8),
    ],
)
def test_no_rows(load: MatrixLoad, operand_of: tuple[str, str], width: int) -> None:
    held = operand(*operand_of)
    assert all(rows_of(load, held, width, 0, n) is None for n in load.matrices)


def test_rows_whose_numbers_do_not_add_up() -> None:
    """Rows 0, 1, 3, 2 of an operand: no sum of bits, so no address."""
    load = replace(PLAIN, shape=(4, 4), matrices=(1,), threads=4, fragment="{0}, {1}")
    right = fragment("{0}, {1}", (4, 4), 4)
    assert rows_of(load, right, 2, 0, 1) is not None
    assert rows_of(load, replace(right, places=tuple(right.places[k] for k in (0, 1, 3, 2))), 2, 0, 1) is None
    ragged = [[(row, column ^ (row == 1)) for column in range(4)] for row in range(4)]
    assert rows_of(load, replace(right, places=tuple(map(tuple, ragged))), 2, 0, 1) is None


PRODUCT = """kernel {name}(x, z) -> (y)
numerics reassociate contract tf32
x f32 [16, 8] heap
z f32 [8, 8] heap
y f32 [16, 8] heap
p f32 [16, 8] shared
1:g
| 16:b 8 p[{{1}},{{2}}] = x[{{1}},{{2}}]
| 16:b 8 y[{{1}},{{2}}] = 0
| 16:m(mma_16x8x8_tf32) 8 8 y[{{1}},{{2}}] fma= p[{{1}},{{3}}] * z[{{3}},{{2}}]
"""


def test_code_of_files_needs_trust() -> None:
    (kernel,) = parse_notation(PRODUCT.format(name="some"))
    assert "ldmatrix<4>(&lane0[0]" in device_text(kernel, spelling=CudaSpelling(), machine=NVIDIA).text
    doubted = replace(NVIDIA, matrix_loads=tuple(replace(load, trusted=False) for load in NVIDIA.matrix_loads))
    with pytest.raises(LoweringError, match=r"loaded by 'ldmatrix', whose template .* --trust-machine"):
        device_text(kernel, spelling=CudaSpelling(), machine=doubted)


def test_languages_without_a_template_load_elements() -> None:
    (kernel,) = parse_notation(PRODUCT.format(name="some"))
    others = replace(NVIDIA, matrix_loads=tuple(replace(load, templates={}) for load in NVIDIA.matrix_loads))
    assert "ldmatrix" not in device_text(kernel, spelling=CudaSpelling(), machine=others).text


def test_names_of_instructions_are_taken() -> None:
    (kernel,) = parse_notation(PRODUCT.format(name="ldmatrix"))
    with pytest.raises(LoweringError, match="would have the name of an instruction that it uses"):
        device_text(kernel, spelling=CudaSpelling(), machine=NVIDIA)
