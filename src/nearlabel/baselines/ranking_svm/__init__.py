"""Rank-SVM: a support vector machine that ranks labels."""
