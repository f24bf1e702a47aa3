"""What one does with a trained model: load it as a classifier, and predict."""
