"""Problems and their answers: outputs, tables, and designs in floats."""
