"""The parts of `pdojo-play`: the state of a game by hand, and the screen that shows it."""
