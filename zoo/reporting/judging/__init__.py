"""What a table comes to: pure functions from it to all that forms show and pictures draw."""
