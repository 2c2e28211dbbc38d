"""RR-on-Bins: the best partition of the labels as a shortest path, and its dual."""
