"""What explorers share."""
