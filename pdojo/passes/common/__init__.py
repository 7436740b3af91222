"""Parts of expert passes for every kind of machine."""
