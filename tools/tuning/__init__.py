"""The parts of `pdojo-tune`: subjects, searches, live displays, measurements, reports, comparisons."""
