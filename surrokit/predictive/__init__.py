"""What draws predict: means of responses, probabilities of classes, and responses themselves."""
