"""The method of our own: dual averaging with gradients from bisected walks, at a scale it finds by itself."""
