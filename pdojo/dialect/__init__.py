"""The dialect, and everything that can be known about a kernel without changing it."""
