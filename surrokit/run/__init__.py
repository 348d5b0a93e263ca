"""The loop over a run's iterations, and the state that it keeps."""
