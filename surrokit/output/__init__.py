"""Files and terminals."""
