"""Model files: what `nearlabel.save` writes and `nearlabel.load` reads."""
