"""From text to typed specs, every fault at once and each with its place."""
