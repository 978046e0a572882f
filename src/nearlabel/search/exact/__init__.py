"""Exact search: every engine finds the same neighbors."""
