"""Parts that all backends share: the walk over a nest, addresses, placement, the protocol."""
