"""PyTorch: `torch.compile(model, backend="pdojo")`. Needs PyTorch (`pip install 'pdojo[torch]'`)."""
