"""Moves of scopes: fusion, tiles, order, pipelines."""
