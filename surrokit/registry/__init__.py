"""Plugins, the components that they offer, and the making of parts."""
