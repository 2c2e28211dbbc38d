"""Measurements of OpenDP, made of mechanisms, against that library: its maps, its compositions and its samplers."""

from __future__ import annotations

import math
import sys
from collections import Counter
from fractions import Fraction

import pytest

import optrand
from optrand.errors import InvalidInput, MissingExtra
from optrand.release.opendp import column_measurement, measurement
from optrand.sampling.discrete_noise import discrete_laplace

DRAWS = 1_500

SIGMAS = 6.5
"""Standard deviations that frequencies may be off: more happen once in ten billion times."""


@pytest.fixture
def library():
    """OpenDP, its features enabled."""
    pytest.importorskip("opendp")
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


def mechanism(epsilon: float = 1.0) -> optrand.Mechanism:
    return optrand.tabulate(optrand.rr_with_prior([0.25] * 4, epsilon))


def close(first: Counter, second: Counter) -> bool:
    """Whether frequencies of two samples of :data:`DRAWS` could be of one distribution."""
    pooled = {value: (first[value] + second[value]) / (2 * DRAWS) for value in {*first, *second}}
    return all(
        abs(first[value] - second[value]) <= SIGMAS * math.sqrt(2 * DRAWS * p * (1 - p)) + 1
        for value, p in pooled.items()
    )


@pytest.mark.usefixtures("library")
def test_a_label_is_measured_with_the_proven_map() -> None:
    ours = mechanism()
    noisy = measurement(ours)
    assert noisy(3.0) in {0.0, 1.0, 2.0, 3.0}
    assert (noisy.map(0), noisy.map(1)) == (0.0, ours.realised_epsilon)
    assert noisy.check(d_in=1, d_out=1.0)
    assert not noisy.check(d_in=1, d_out=0.99)
    assert noisy.input_domain.member(3.0)
    assert not noisy.input_domain.member(2.5)


@pytest.mark.usefixtures("library")
def test_a_column_is_measured_row_by_row() -> None:
    ours = mechanism()
    noisy = column_measurement(ours)
    assert len(noisy([0.0, 3.0, 2.0])) == 3
    assert noisy.map(1) == ours.realised_epsilon
    assert noisy.map(3) >= 3 * ours.realised_epsilon
    assert noisy.input_domain.member([0.0, 1.0])
    assert not noisy.input_domain.member([0.0, 1.5])


def test_measurements_compose_in_their_library(library) -> None:
    both = library.c.make_composition([measurement(mechanism(1.0)), measurement(mechanism(0.5))])
    assert len(both(2.0)) == 2
    assert 1.5 - 1e-9 <= both.map(1) <= 1.5 + 1e-9


@pytest.mark.usefixtures("library")
def test_a_label_of_another_set_is_refused_without_being_told() -> None:
    with pytest.raises(Exception, match="label") as told:
        measurement(mechanism())(917.25)
    assert "917" not in str(told.value)


def test_randomized_response_is_theirs(library) -> None:
    """Their probability of the true category is ours, epsilon is ours, and so are the frequencies."""
    ours = mechanism()
    keep = ours.weights[0, 0] / ours.total
    theirs = library.m.make_randomized_response(["0", "1", "2", "3"], prob=keep)
    assert theirs.map(1) == pytest.approx(ours.realised_epsilon, abs=1e-12)
    drawn = Counter(str(int(v)) for v in ours.sample([2.0] * DRAWS))
    other = Counter(theirs("2") for _ in range(DRAWS))
    assert close(drawn, other)
    assert not close(drawn, Counter(theirs("1") for _ in range(DRAWS)))


def test_discrete_laplace_noise_is_theirs(library) -> None:
    theirs = library.m.make_laplace(library.atom_domain(T=int), library.absolute_distance(T=int), scale=2.0)
    assert theirs.map(1) == pytest.approx(0.5)
    assert close(Counter(discrete_laplace(Fraction(2), DRAWS)), Counter(theirs(0) for _ in range(DRAWS)))


@pytest.mark.usefixtures("library")
def test_floats_have_no_measurement() -> None:
    with pytest.raises(InvalidInput, match="tabulate it"):
        measurement(optrand.rr_with_prior([0.5, 0.5], 1.0))  # type: ignore[arg-type]


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(MissingExtra, match=r"optrand\[opendp\]"):
        measurement(mechanism())
