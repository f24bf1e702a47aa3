"""Data of any kind: Python objects, images, tables, text and data sets of the hub."""
