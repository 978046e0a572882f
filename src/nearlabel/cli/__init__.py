"""The command line: ``nearlabel VERB …``.

A verb lives in the file of its name. Nothing heavy is imported before a verb runs, so that help
comes at once.
"""

from nearlabel.cli.process import main, run

__all__ = ["main", "run"]
