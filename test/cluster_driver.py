"""A campaign of two kernels on a private cluster, in a process of its own that a test kills: `cluster_driver.py FILE`.

Prints the process of each worker on standard error, and in the end the history of each search as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from pdojo.budget import Budget
from pdojo.dialect.machines.registry import host
from pdojo.dialect.notation import parse_notation
from pdojo.search.engine.campaign import campaign, search_task
from pdojo.search.evaluators.cluster import Cluster, Connection, OnCluster
from pdojo.transforms.game import Game
from search_games import Downhill, Edges

EVALUATIONS = 16
ONE = replace(host(), threads=1)
TEXT = """
kernel {name}(x) -> (y)
x f32 [64, 48] heap
y f32 [64, 48] heap
t f32 [64, 48] heap

64 48 t[{{0}},{{1}}] = {function}(x[{{0}},{{1}}])
64 48 y[{{0}},{{1}}] = t[{{0}},{{1}}] + 1
"""


def start(name: str) -> Game:
    return Game(parse_notation(TEXT.format(name=name, function=name))[0], ONE)


def main(database: Path) -> None:
    with Connection("local") as connection:
        cluster = Cluster(connection, ONE, most=2)
        sys.stderr.write(" ".join(str(facts.process) for facts in cluster.workers))
        sys.stderr.flush()
        tasks = [
            search_task(
                name,
                partial(start, name),
                lambda game, stop: OnCluster(cluster, game.plain, stop=stop),
                Downhill(),
                Edges(),
                Budget(EVALUATIONS),
                seed=1,
            )
            for name in ("exp", "tanh")
        ]
        found = campaign(tasks, cluster.size, database)
        cluster.close()
    rows = [[[row.number, row.cost, row.failure] for row in s.result.history] for s in found if s.result is not None]
    endings = [s.result.ending.value for s in found if s.result is not None]
    errors = [str(s.error) for s in found if s.error is not None]
    sys.stdout.write(json.dumps({"histories": rows, "endings": endings, "errors": errors}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
