"""The hooks of a method: what its author may write, as docs/architecture.md lists it."""

HOOKS = (
    "_check_parameters",
    "_rows_to_learn_from",
    "_learn",
    "_follow",
    "_prepare",
    "_scores",
    "_left_out_scores",
    "_decide",
    "_probabilities",
    "_terms",
)
