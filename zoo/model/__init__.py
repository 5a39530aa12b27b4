"""Parts wired into a model, built from a spec, and what it costs."""
