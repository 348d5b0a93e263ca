"""What surrogates are made from, and how good they are."""
