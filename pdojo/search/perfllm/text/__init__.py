"""`text-small`: an encoder that reads the notation with its own tokens and a small transformer."""
