"""The Snitch core: an assembler and a cycle-accurate simulator; they need nothing else of pdojo."""
