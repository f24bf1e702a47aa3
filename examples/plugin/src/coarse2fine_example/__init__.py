"""A method, a data set and a model for coarse2fine; rename them and write your own."""
