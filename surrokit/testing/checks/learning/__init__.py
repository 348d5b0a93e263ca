"""Checks of surrogates, explorers and schedules."""
