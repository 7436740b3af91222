"""The parts of `pdojo-tune`: what is tuned, the search, what is shown meanwhile, measurements, reports, comparisons."""
