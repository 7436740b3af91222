"""Expert passes: a folder for each kind of machine, with its cost model; kernels after a pass, verified."""
