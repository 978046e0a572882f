"""Comparison with multi-label learners of other libraries, tuned on the training rows."""
