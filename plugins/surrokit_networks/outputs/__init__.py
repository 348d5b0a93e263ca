"""Networks of the outputs of a forward map."""
