"""Data sets that have a name: each module reads one from where its makers put what."""
