"""Adapters to other training libraries, one file each; import the one you need."""
