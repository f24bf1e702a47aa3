"""The parts of affinity clustering.

rounds: what every round does; matrix: on a matrix of distances; tiles: similarities a tile
at a time; vectors: on embeddings, by tiles first and on a matrix of clusters then.
"""
