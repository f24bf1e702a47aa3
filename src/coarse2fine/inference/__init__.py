"""What one does with a trained run: take its model elsewhere."""
