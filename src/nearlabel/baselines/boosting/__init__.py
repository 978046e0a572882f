"""Boosting of stumps: AdaBoost.MH, and ADTBoost.MH, an alternating tree."""
