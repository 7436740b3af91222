"""Reports: one HTML file that needs no network and no other file."""
