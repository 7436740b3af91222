"""What `import pdojo` offers: kernels by name, file or text, the game, compiling, running and tuning."""
