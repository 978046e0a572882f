"""Figures, and the page that shows the papers beside what was measured."""
