"""The parts of `pdojo-tune`: tasks, searches, live displays, measurements, reports, comparisons."""
