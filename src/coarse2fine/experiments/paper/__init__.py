"""The experiments of the paper, declared; `published` has its own figures."""
