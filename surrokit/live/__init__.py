"""Pages about runs while they go on."""
