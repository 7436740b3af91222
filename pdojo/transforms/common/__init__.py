"""Parts that moves of several families share."""
