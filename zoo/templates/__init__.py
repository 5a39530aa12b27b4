"""Packages to write a variant in, and what fills them in."""
