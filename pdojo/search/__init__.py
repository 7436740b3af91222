"""Searches for faster programs: evaluators, strategies, races, database, tuning. Compiling needs none of it."""
