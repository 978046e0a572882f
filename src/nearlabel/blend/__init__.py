"""Blends of methods with ridge regressions of the labels, and a distance learned from these."""
