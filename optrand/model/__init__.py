"""A problem and its answer: losses, outputs, interval columns, randomizers, solutions and their feasibility."""
