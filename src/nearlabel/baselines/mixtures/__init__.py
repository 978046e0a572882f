"""Mixtures of word distributions, PMM1 and PMM2."""
