"""A bandit: it learns which families of moves make programs faster, and takes the others ever more rarely.

python examples/agents/bandit.py softmax:64x512 --episodes 20
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from math import log
from random import Random

import gymnasium

import pdojo.env  # registers pdojo/Kernel-v0


def main() -> None:
    """Play episodes and print the best trace."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kernel")
    parser.add_argument("--machine", default="x86-64-avx512")
    parser.add_argument("--evaluator", default="analytical")
    parser.add_argument("--granularity", default="single")
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--horizon", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    episodes, seed = options.pop("episodes"), options.pop("seed")

    env, random = gymnasium.make(pdojo.env.ID, **options), Random(seed)
    gains: defaultdict[str, list[float]] = defaultdict(lambda: [0.5])  # optimistic: every family is tried
    best, trace = 0.0, []
    for episode in range(episodes):
        _, info = env.reset(seed=seed if episode == 0 else None)
        before, is_over = 1.0, False
        while not is_over:
            families = [move.partition("@")[0] for move in info["moves"]]
            values = [sum(gains[each]) / len(gains[each]) for each in families]
            chance = 1.0 - 0.9 * episode / episodes
            at_random = random.random() < chance
            action = random.randrange(len(values)) if at_random else values.index(max(values))
            _, reward, terminated, truncated, info = env.step(action)
            gains[families[action]].append(log(max(float(reward), 1e-9) / before))
            before, is_over = max(float(reward), 1e-9), terminated or truncated
            if reward > best:
                best, trace = float(reward), info["trace"]
    env.close()
    print(f"best: {best:.3f} times as fast as the start, after {len(trace)} moves")
    print("\n".join(trace))


if __name__ == "__main__":
    main()
