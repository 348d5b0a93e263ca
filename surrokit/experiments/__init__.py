"""Tables and figures as parts, and their reproduction."""
