"""An elliptic equation on the unit square."""
