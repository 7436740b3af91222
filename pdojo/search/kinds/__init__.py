"""How to tune for a kind of machine: expert passes, proposals and a cost model, in one folder for each kind."""
