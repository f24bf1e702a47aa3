"""What `Hierarchy` is made of: its levels, how they nest, and how they print."""
