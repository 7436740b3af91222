"""Tuning for Snitch cores: passes for streams and hardware loops, and simulated cycles."""
