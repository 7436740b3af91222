"""The view of a kernel as plain objects: scopes, statements, accesses, and their places in memory."""
