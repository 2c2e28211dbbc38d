"""Data that a model learns easily: three clusters of points, and numbers on a line."""

import numpy as np
from sklearn.datasets import make_blobs

CLASSES = ["red", "green", "blue"]
"""Names of the three clusters, not in increasing order."""


def blob_codes(n: int = 600):
    """Features and numbers of clusters."""
    return make_blobs(n, centers=[[0, 0], [4, 0], [0, 4]], cluster_std=1.0, random_state=0)


def blobs(n: int = 600):
    """Features and names of clusters."""
    X, codes = blob_codes(n)
    return X, np.array(CLASSES)[codes]


def line(n: int = 1200):
    """Features, the first of which predicts a label from 0 to 20."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.clip(np.rint(10 + 3 * X[:, 0] + rng.normal(size=n)), 0, 20).astype(int)


def sides(X):
    """Public clusters: the side of zero on which a row lies."""
    return (np.asarray(X)[:, 0] > 0).astype(int)
