"""The moves: protocol, registry, one file per family, traces, passes."""
