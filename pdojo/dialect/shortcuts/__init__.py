"""Faster ways to answers that `pdojo.dialect.flow` and `pdojo.dialect.rules` give exactly."""
