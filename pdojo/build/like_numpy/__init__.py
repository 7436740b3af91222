"""NumPy's spelling for handles: methods, NumPy's functions and ufuncs, NumPy's arrays as constants.

`methods` is a base of `Array`; it finds the functions of the other files in `table`, which they fill.
"""
