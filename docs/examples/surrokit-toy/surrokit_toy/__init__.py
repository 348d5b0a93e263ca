"""An example plugin for surrokit."""
