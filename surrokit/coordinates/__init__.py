"""Parameters with names, shapes and bounds, and the whole line that samplers move on."""
