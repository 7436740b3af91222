"""Analyses of a program for moves: collisions, dependences, storage, liveness, validity."""
