"""Dataflow of a program: uses of memory, collisions, flows and origins of values; exact, by integer sets."""
