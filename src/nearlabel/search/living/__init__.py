"""Rows that come and go: searches among those that are there, and neighbors kept up to date."""
