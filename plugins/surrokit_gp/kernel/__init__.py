"""The squared exponential, and its linear algebra."""
