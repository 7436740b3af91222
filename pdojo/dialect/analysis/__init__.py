"""Everything that moves ask about a program: collisions, dependences, storage, liveness, validity."""
