"""One run: the loop, what is measured, and the processes that share it."""
