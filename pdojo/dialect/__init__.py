"""The dialect and everything that may be known about a kernel without changing it."""
