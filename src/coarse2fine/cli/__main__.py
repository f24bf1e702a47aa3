"""`python -m coarse2fine.cli`, which is the command `c2f`."""

from . import main

main()
