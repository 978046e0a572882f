"""The five papers: what they print, how it is reproduced, and what came out."""
