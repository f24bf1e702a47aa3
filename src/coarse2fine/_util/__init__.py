"""What knows nothing of the subject: arrays, files, text, imports."""
