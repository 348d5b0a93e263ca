"""The search for modes."""
