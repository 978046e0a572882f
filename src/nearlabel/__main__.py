"""``python -m nearlabel``: the command line."""

from nearlabel.cli import main

main()
