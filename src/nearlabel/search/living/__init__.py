"""Searches among rows that are added and removed, and neighbors kept up to date."""
