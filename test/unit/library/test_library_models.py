"""Models as functions of a library: results, sizes, threads, weights, their proof, and foreign plans."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pdojo_tools import lib

from differential.cross import PLATFORMS
from loaded_library import SHIPPED, Loaded, build_unproved, placed, poisoned, require_compiler, small_spec
from pdojo import build
from pdojo.dialect.machines.registry import host, machine
from pdojo.errors import UsageError
from pdojo.library.interface import CODES
from pdojo.library.manifest import MANIFEST, digests
from pdojo.library.model_plan import value_of
from pdojo.library.models import ModelSource, planned_models
from pdojo.library.plan_checking import plan_problems
from pdojo.library.schema import parse_manifest, read_manifest
from pdojo.library.verify import verify
from pdojo.model.model import Model
from toolchain import c_compiler, require_program
from unit.model.graphs import Graphs, constant
from unit.model.test_open_models import wanted, whole

EXAMPLES = Path(__file__).parents[3] / "examples" / "models"
CODE = {name: number for number, name in enumerate(CODES)}
OPERATORS = [{"kernel": "softmax", "shapes": ["4x8"]}]


def mixed() -> Model:
    """Rows at computed indices, these, an input and a constant as results."""
    made = Graphs()
    x, i = made.input("x", 6, 16), made.builder.input("i", "i64", (4,))
    doubled = made("double", lambda a: a * 2, i)
    found = made("rows", build.take, made("scale", lambda a: a * 0.5, x), doubled)
    return Model.of(made.finish(made("exp", build.exp, found), doubled, x, constant(3, 5)))


def stepped() -> Model:
    """Whole numbers next to sums: another order of additions gives others."""
    made = Graphs()
    x, y = made.input("x", 8, 64), made.input("y", 64, 16)
    return Model.of(made.finish(made("sums", lambda x, y: build.cast(build.matmul(x, y) * 1e5, "i32"), x, y)))


def wordy() -> Model:
    """Inputs with names that C, its preprocessor or the library's header has."""
    made = Graphs()
    names = ("API", "SMALL_VERSION", "small_handle", "handle", "int64_t", "int")
    inputs = [made.input(name, 3) for name in names]
    return Model.of(made.finish(reduce(lambda a, b: made("sum", lambda x, y: x + y, a, b), inputs)))


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with two models, of which one has its weights beside it."""
    require_compiler()
    folder = tmp_path_factory.mktemp("models") / "dist"
    models = [ModelSource("whole", whole()), ModelSource("apart", whole(), is_apart=True)]
    models.append(ModelSource("mixed", mixed()))
    models.append(ModelSource("softmax_f32_4x8", wordy()))
    build_unproved(small_spec(operators=OPERATORS), folder, models=models)
    return folder


@pytest.fixture(scope="module")
def library(sound: Path) -> Loaded:
    return Loaded.of(sound)


def _loaded(library: Loaded, model: str, threads: int = 2, level: str | None = None) -> ctypes.c_void_p:
    handle = library.create(threads, level)
    assert library.function(f"{model}_load")(handle, None) == CODE["OK"]
    return handle


def _called(library: Loaded, model: str, handle: object, rows: int, offset: int = 0) -> None:
    x = np.random.default_rng(rows).uniform(-1, 1, (rows, 16)).astype(np.float32)
    outputs = [poisoned((2 * rows, 2 * rows), offset), poisoned((2 * rows, 16), offset)]
    assert library.call(model, handle, [rows], [placed(x, offset), *outputs]) == CODE["OK"]
    for own, right in zip(outputs, wanted(x), strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", ["whole", "apart"])
@pytest.mark.parametrize("threads", [1, 2])
def test_results_at_all_sizes_and_addresses(library: Loaded, model: str, threads: int) -> None:
    for level in [each.name for each in (library.folder / "machines").glob("*.toml")]:
        handle = _loaded(library, model, threads, level.removesuffix(".toml"))
        for rows, offset in ((1, 0), (40, 4), (7, 0), (2, 60)):
            _called(library, model, handle, rows, offset)
        library.function("destroy")(handle)


@pytest.mark.parametrize("offset", [0, 8])
def test_indices_inputs_and_constants_as_results(library: Loaded, offset: int) -> None:
    handle = _loaded(library, "mixed")
    x, i = placed(constant(6, 16), offset), placed(np.array([0, 2, -1, -3]), offset)
    outputs = [poisoned((4, 16), offset), placed(np.full(4, 99), offset), poisoned((6, 16), offset), poisoned((3, 5))]
    assert library.call("mixed", handle, [], [x, i, *outputs]) == CODE["OK"]
    for own, right in zip(outputs, [np.exp(x[i * 2] * 0.5), i * 2, x, constant(3, 5)], strict=True):
        np.testing.assert_allclose(own, right, rtol=1e-5)
    i[3] = 3
    assert library.call("mixed", handle, [], [x, i, *outputs]) == CODE["INDICES"]
    library.function("destroy")(handle)


def test_names_that_c_has(library: Loaded) -> None:
    handle = _loaded(library, "softmax_f32_4x8")
    inputs = [placed(constant(3) + k) for k in range(6)]
    result = poisoned((3,))
    assert library.call("softmax_f32_4x8", handle, [], [*inputs, result]) == CODE["OK"]
    np.testing.assert_allclose(result, np.sum(inputs, axis=0), rtol=1e-5)
    library.function("destroy")(handle)


def test_weights_beside_a_library_behind_a_link(sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "moved"))
    link = tmp_path / "linked" / "lib" / "there" / "libsmall.so"
    link.parent.mkdir(parents=True)
    link.symlink_to(next((folder / "lib").glob("*-linux-gnu")) / "libsmall.so")
    library = Loaded(folder, "small", ctypes.CDLL(str(link)))
    handle = _loaded(library, "apart")
    _called(library, "apart", handle, 5)
    library.function("destroy")(handle)


def test_handles_share_a_model(library: Loaded) -> None:
    first, second = _loaded(library, "whole"), library.create()
    x = placed(np.zeros((1, 16), np.float32))
    arrays = [x, poisoned((2, 2)), poisoned((2, 16))]
    assert library.call("whole", second, [1], arrays) == CODE["WEIGHTS"]
    assert library.function("apart_share")(second, first) == CODE["WEIGHTS"]
    assert library.function("whole_share")(second, first) == CODE["OK"]
    library.function("destroy")(first)
    _called(library, "whole", second, 5)
    assert library.function("whole_load")(second, None) == CODE["OK"]
    library.function("destroy")(second)


def test_refused_calls(library: Loaded) -> None:
    handle = _loaded(library, "whole")
    x, y, z = placed(np.zeros((40, 16), np.float32)), poisoned((80, 80)), poisoned((80, 16))
    for rows in (0, 41, -1, 1 << 62):
        assert library.call("whole", handle, [rows], [x, y, z]) == CODE["SIZES"]
    assert library.call("whole", handle, [40], [x, None, z]) == CODE["NULL"]
    assert library.call("whole", None, [40], [x, y, z]) == CODE["NULL"]
    assert library.call("whole", handle, [40], [x, y, x]) == CODE["OVERLAP"]
    odd = np.zeros(40 * 64 + 1, np.uint8)[1:].view(np.uint8)
    assert library.call("whole", handle, [40], [odd, y, z]) == CODE["ALIGNMENT"]
    assert np.isnan(y).all()
    assert np.isnan(z).all()
    library.function("destroy")(handle)


@pytest.mark.parametrize("fault", ["missing", "shorter", "another"])
def test_weights_of_another_build_are_refused(library: Loaded, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "apart.bin"
    data = (library.folder / "weights" / "apart.bin").read_bytes()
    if fault != "missing":
        file.write_bytes(data[:-1] if fault == "shorter" else data[:-1] + bytes([data[-1] ^ 1]))
    handle = library.create()
    assert library.function("apart_load")(handle, str(file).encode()) == CODE["WEIGHTS"]
    file.write_bytes(data)
    assert library.function("apart_load")(handle, str(file).encode()) == CODE["OK"]
    _called(library, "apart", handle, 3)
    library.function("destroy")(handle)


def test_a_library_of_models_is_proved(sound: Path) -> None:
    assert verify(sound) == []


def test_numbers_that_depend_on_roundings_are_proved(tmp_path: Path) -> None:
    require_compiler()
    spec = small_spec(operators=[], levels=SHIPPED[host().architecture])
    build_unproved(spec, tmp_path / "dist", models=[ModelSource("stepped", stepped())])
    assert verify(tmp_path / "dist") == []


def test_the_proof_notices_other_weights(sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "dist"))
    file = folder / "weights" / "whole.bin"
    data = bytearray(file.read_bytes())
    data[5] ^= 0x40
    file.write_bytes(data)
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"] = digests(folder)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    assert any("digest" in str(finding) for finding in verify(folder))


def test_a_kernel_without_a_program_is_a_fault(sound: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(sound, tmp_path / "dist"))
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["models"][3]["kernels"][0]["variants"].pop()
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    assert any("the entry has no program for level" in str(finding) for finding in verify(folder))


Change = Callable[[dict[str, Any]], object]
FORGED: dict[str, Change] = {
    "there is no block": lambda plan: plan["calls"][0]["arguments"][-1].update(kind="block", number=99),
    "there is no kernel": lambda plan: plan["calls"][0].update(kernel=99),
    "there is no room": lambda plan: plan["calls"][0]["arguments"][0].update(offset="N*64"),
    "is no extent": lambda plan: plan["calls"][0]["arguments"][0].update(offset="system(N)"),
    "is written where the model reads": lambda plan: plan["calls"][0]["arguments"][-1].update(kind="input", number=0),
    "does not come before": lambda plan: plan.update(blocks=[{"bytes": 64, "below": [0]}]),
    "a model has kernels and outputs": lambda plan: plan.update(kernels=[], calls=[], copies=[]),
    "is no size": lambda plan: plan.update(sizes={"N": "5..2"}),
    "it is no SHA-256": lambda plan: plan.update(digest='"; system("x'),
    "kernels: operator: it is 'whole_k0'": lambda plan: plan.update(name="a b"),
    "has other arguments": lambda plan: plan["calls"][0]["arguments"].pop(),
    "its sizes are not those": lambda plan: plan["calls"][0].update(sizes=["N*41"]),
}


@pytest.mark.parametrize("problem", FORGED)
def test_foreign_plans_are_refused(sound: Path, problem: str) -> None:
    manifest = json.loads((sound / MANIFEST).read_text())
    FORGED[problem](manifest["models"][3])
    with pytest.raises(UsageError, match=problem):
        parse_manifest(json.dumps(manifest))


def test_plans_follow_from_manifests(sound: Path) -> None:
    found = read_manifest(sound)
    assert [plan.name for plan in found.models] == ["apart", "mixed", "softmax_f32_4x8", "whole"]
    assert all(not list(plan_problems(plan)) for plan in found.models)
    (sizes,) = {tuple(plan.sizes.items()) for plan in found.models if plan.sizes}
    assert sizes == (("N", range(1, 41)),)
    assert value_of("N*4-(N*3)//4*2+1", {"N": 5}) == 5 * 4 - 15 // 4 * 2 + 1
    with pytest.raises(ValueError, match="no expression"):
        value_of("len(N)", {"N": 5})


def test_a_model_without_kernels() -> None:
    made = Graphs()
    with pytest.raises(UsageError, match="model 'idle' has no kernels"):
        planned_models([ModelSource("idle", Model.of(made.finish(made.input("x", 3))))])


def test_names_of_functions() -> None:
    with pytest.raises(UsageError, match="two models are called 'a'"):
        planned_models([ModelSource("a", whole()), ModelSource("a", whole())])
    with pytest.raises(UsageError, match="every library has a function 'create'"):
        planned_models([ModelSource("create", whole())])
    for name, other in (("softmax_f32", "functions are called 'softmax_f32'"), ("a", "functions are called 'a_load'")):
        models = [ModelSource(name, whole()), ModelSource("a_load", whole())]
        with pytest.raises(UsageError, match=f"two {other}"):
            build_unproved(small_spec(), Path("nowhere"), models=models)


def test_python_users(sound: Path, tmp_path: Path) -> None:
    """The wheel: models are functions of arrays, in several threads."""
    (wheel,) = (sound / "wheel").glob("*.whl")
    shutil.unpack_archive(wheel, tmp_path, "zip")
    done = subprocess.run(
        [sys.executable, "-c", USER], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr


USER = """
import threading
import numpy as np
import small

def call():
    for rows in (1, 7, 40):
        x = np.ones((rows, 16), np.float32)
        for model in (small.whole, small.apart):
            y, z = model(x)
            assert y.shape == (2 * rows, 2 * rows) and (z[rows:] == 2).all()

call()
threads = [threading.Thread(target=call) for _ in range(3)]
[each.start() for each in threads]
[each.join() for each in threads]
try:
    small.whole(np.ones((41, 16), np.float32))
except ValueError as error:
    assert "does not serve x [41, 16]" in str(error)
else:
    raise AssertionError
"""


def test_c_users(sound: Path, tmp_path: Path) -> None:
    """A C program that compiles without warnings, and runs without Python."""
    (folder,) = (sound / "lib").glob("*-linux-gnu")
    (tmp_path / "main.c").write_text(MAIN)
    command = [c_compiler(), "-std=c99", "-Wall", "-Wextra", "-Werror", "main.c", f"-I{sound / 'include'}"]
    command += [f"-L{folder}", "-lsmall", f"-Wl,-rpath,{folder}", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True, env={})
    assert done.stdout == "2.0\n"


@pytest.mark.parametrize("target", ["neoverse-v2", "rv64gcv"])
def test_other_architectures(target: str, tmp_path: Path) -> None:
    """The same program with a library of another architecture, under qemu-user."""
    platform = PLATFORMS[target]
    root = f"/usr/{platform.compiler.removesuffix('-gcc')}"
    require_program((platform.compiler,), (*platform.runner, "-L", root))
    require_compiler(machine(target).architecture)
    models = [ModelSource("apart", whole(), is_apart=True)]
    build_unproved(small_spec(levels=[target], operators=[]), tmp_path / "dist", models=models)
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    (tmp_path / "main.c").write_text(MAIN)
    command = [platform.compiler, "main.c", "-Idist/include", f"-L{folder}", "-lsmall", f"-Wl,-rpath,{folder}"]
    subprocess.run([*command, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [*platform.runner, "-L", root, "./main"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2.0\n"), done.stderr


MAIN = """
#include <small.h>
#include <stdio.h>

int main(void) {
  small_handle *handle;
  float x[48], y[36], z[96];
  for (int k = 0; k < 48; k++) x[k] = 1;
  if (small_create(&handle, 1) != SMALL_OK) return 1;
  if (small_apart_load(handle, NULL) != SMALL_OK) return 2;
  if (small_apart(handle, 3, x, y, z) != SMALL_OK) return 3;
  printf("%.1f\\n", z[95]);
  small_destroy(handle);
  return 0;
}
"""


def test_the_examples(tmp_path: Path) -> None:
    """A digit in an image, and text with a cache, by C programs without Python."""
    pytest.importorskip("torch")
    require_compiler()
    assert lib.main(["build", str(EXAMPLES / "spec.toml"), "-o", str(tmp_path / "dist")]) == 0
    (folder,) = (tmp_path / "dist" / "lib").glob("*-linux-gnu")
    command = [c_compiler(), "-Wall", "-Wextra", "-Werror", str(EXAMPLES / "main.c"), "-Idist/include", f"-L{folder}"]
    subprocess.run([*command, "-ltwo_models", f"-Wl,-rpath,{folder}", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True, env={})
    assert done.stdout == "the image is a 7\nthe quick brown fox jumps over the lazy dog; \n"
