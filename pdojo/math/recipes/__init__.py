"""Recipes: elementary functions written with the operations of `pdojo.math.values`."""
