"""The hypothesis profile, and the strategies that tests of the core share."""

import math

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

settings.register_profile("optrand", derandomize=True, deadline=None)
settings.load_profile("optrand")

EPSILONS = (1e-6, 1e-3, 0.1, 0.5, 1.0, 2.5, 8.0, 17.0, 40.0, 700.0)

epsilons = st.one_of(st.sampled_from(EPSILONS), st.floats(1e-6, 40.0))
"""Budgets far outside the range in which problems are solved, too."""

solved_epsilons = st.one_of(st.sampled_from([0.01, 0.1, 0.7, 1.0, 2.0, 4.0, 8.0]), st.floats(0.01, 8.0))


@st.composite
def label_sets(draw, min_size=1, max_size=6):
    """Increasing labels: even, uneven, negative, in clusters, or far from zero."""
    k = draw(st.integers(min_size, max_size))
    gaps = draw(
        st.one_of(
            st.just([1.0] * k),
            st.lists(st.sampled_from([1.0, 0.5, 3.0, 0.01, 20.0]), min_size=k, max_size=k),
            st.lists(st.sampled_from([1.0, 1.0, 1e-5]), min_size=k, max_size=k),
        )
    )
    start = draw(st.sampled_from([0.0, 0.0, -2.5, 1.0, 1000.0]))
    return start + np.concatenate(([0.0], np.cumsum(gaps[1:])))


@st.composite
def priors(draw, k):
    """Probabilities with zeros, ties, spikes and entries that hardly count."""
    entry = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 5.0, 1e-3, 1e-8, 1e5])
    weights = np.array(draw(st.lists(entry, min_size=k, max_size=k).filter(any)))
    prior = weights / math.fsum(weights)
    return prior / math.fsum(prior)
