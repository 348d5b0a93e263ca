"""Parameters with names, shapes and bounds, and unbounded coordinates for samplers."""
