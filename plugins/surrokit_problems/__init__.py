"""The paper's targets and a few well-known ones."""
