"""The parts of `pdojo-lib`."""
