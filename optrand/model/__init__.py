"""Problems and their answers: losses, outputs, tables, and designs in floats."""
