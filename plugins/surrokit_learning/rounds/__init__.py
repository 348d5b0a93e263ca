"""The explorer that goes round by round."""
