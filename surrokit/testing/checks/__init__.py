"""The checks themselves, a module for each kind of part."""
