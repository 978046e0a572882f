"""The five papers: what they print, how it is made anew, and what came out."""
