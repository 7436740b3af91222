"""Reports: one self-contained HTML file."""
