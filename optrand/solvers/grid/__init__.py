"""Problems on a grid."""
