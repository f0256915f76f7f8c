"""`python -m attar.cli` is `attar`."""

from attar.cli import main

main()
