"""What is read off a neighbor graph and a label matrix: counts, scores, ranks, decisions."""
