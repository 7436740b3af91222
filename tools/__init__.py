"""The command-line tools of pdojo; each module has one `main`."""
