"""What exists only for speed: faster convolutions for first-order training on the processor."""
