"""The view of a kernel as plain objects: scopes, statements, accesses, and where they are in memory."""
