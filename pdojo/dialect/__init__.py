"""The dialect, and all analyses of a kernel that do not change it."""
