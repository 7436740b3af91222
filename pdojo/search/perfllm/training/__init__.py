"""Training an agent over many kernels: episodes are played by workers, and learned from by one process."""
