"""Expert passes for graphics processors."""
