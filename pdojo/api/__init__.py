"""The functions of `import pdojo`: kernels by name, file or text, the game, compiling, running and tuning."""
