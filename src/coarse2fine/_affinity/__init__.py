"""Affinity clustering, round by round.

rounds: what a round does, however it gets its distances; matrix: rounds on a matrix of
distances; tiles: similarities of embeddings, one tile of the K×K matrix at a time; vectors:
rounds on embeddings, first by tiles (maxima), then on the matrix of what clusters are left
(contraction); spread: who computes the tiles; neighbours: rounds on what faiss finds.
"""
