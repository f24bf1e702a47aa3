"""What one does with a trained run: predict with its model, and take it elsewhere."""
