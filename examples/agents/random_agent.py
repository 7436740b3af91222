"""A random agent: it takes offered actions at random, and keeps the best program that it met.

python examples/agents/random_agent.py softmax:64x512 --episodes 20
"""

from __future__ import annotations

import argparse

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

    env = gymnasium.make(pdojo.env.ID, **options)
    env.action_space.seed(seed)
    best, trace = 0.0, []
    for episode in range(episodes):
        observation, info = env.reset(seed=seed if episode == 0 else None)
        is_over = False
        while not is_over:
            action = env.action_space.sample(mask=observation["action_mask"])
            observation, reward, terminated, truncated, info = env.step(action)
            is_over = terminated or truncated
            if reward > best:
                best, trace = float(reward), info["trace"]
    env.close()
    print(f"best: {best:.3f} times as fast as the start, after {len(trace)} moves")
    print("\n".join(trace))


if __name__ == "__main__":
    main()
