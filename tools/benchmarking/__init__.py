"""The parts of `pdojo-bench`: what a kernel needs at least, one measurement, results on disk, tables and plots."""
