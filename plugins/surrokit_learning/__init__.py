"""Learning schedules and explorers."""
