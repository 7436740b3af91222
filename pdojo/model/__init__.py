"""Models: graphs of kernels with constants and a memory plan, which all frontends make."""
