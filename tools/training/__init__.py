"""Parts of `pdojo-train`."""
