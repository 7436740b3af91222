"""A machine of your own: a file describes it, and the expert pass makes other moves for it.

python examples/own_machine.py
"""

from __future__ import annotations

from pathlib import Path

import pdojo

BOARD = Path(__file__).parent / "my-board.toml"
KERNEL = "softmax:64x512"


def main() -> None:
    """Tune a kernel for two machines without running it; the meaning is checked all the same."""
    machines = [pdojo.machine("x86-64-avx512"), pdojo.machine(str(BOARD))]
    found = {each.name: pdojo.tune(KERNEL, each, measure=False) for each in machines}
    assert all(tuned.is_verified for tuned in found.values())
    wide, narrow = ({str(step.move) for step in found[each.name].trace.steps} for each in machines)
    print("\n".join(f"only for {machines[1].name}: {move}" for move in sorted(narrow - wide)[:5]))
    vectors = {each.name: max(each.vector_bytes) for each in machines}
    assert vectors == {"x86-64-avx512": 64, "my-board": 32}
    assert narrow != wide
    print(f"{len(narrow)} moves for {machines[1].name}, {len(wide)} for {machines[0].name}")


if __name__ == "__main__":
    main()
