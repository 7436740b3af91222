"""The parts of `pdojo-play`: the state of a manual game, and the screen that shows it."""
