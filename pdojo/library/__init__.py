"""Generated libraries: tuned kernels as a C library and a wheel that need neither pdojo nor LLVM (`pdojo-lib`)."""
