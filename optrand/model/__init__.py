"""Problems and their answers: losses, outputs, interval columns, randomizers, solutions and their feasibility."""
