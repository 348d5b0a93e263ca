"""A process about a quadratic that is drawn to a normal density's."""
