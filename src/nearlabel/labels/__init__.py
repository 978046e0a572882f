"""What is computed from a neighbor graph and a label matrix: counts, scores, ranks, decisions."""
