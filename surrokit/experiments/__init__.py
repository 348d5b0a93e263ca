"""Tables and figures as parts, and how they are reproduced."""
