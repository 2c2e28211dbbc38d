"""Measurements of OpenDP, so that an exact mechanism chains and composes with the rest of that library.

``pip install 'optrand[opendp]'``. OpenDP calls them user-defined, and asks that they are honest: the privacy map is the
one that was proven in integers, rounded up, and the function draws from the very integers that it was proven of.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from optrand.base.arithmetic import float_above
from optrand.errors import InvalidInput, MissingExtra
from optrand.mechanism.mechanism import Mechanism

__all__ = ["column_measurement", "measurement"]


def measurement(mechanism: Mechanism) -> Any:
    """Measurement of one label under the discrete metric: two labels that differ are at distance 1.

    Parameters
    ----------
    mechanism : Mechanism

    Returns
    -------
    opendp.mod.Measurement
        From the set of labels to floats; its map is 0 at distance 0 and the realised epsilon at 1.

    Raises
    ------
    MissingExtra
        OpenDP is not installed.

    Notes
    -----
    OpenDP takes no look at the domain before it calls: a label of another set is refused by the mechanism.
    """
    dp, labels = _library(), frozenset(_checked(mechanism).labels.tolist())
    return dp.m.make_user_measurement(
        dp.user_domain("OptrandLabels", lambda label: label in labels),
        dp.discrete_distance(),
        dp.max_divergence(),
        lambda label: float(mechanism.sample([label])[0]),
        lambda distance: mechanism.realised_epsilon if distance else 0.0,
        TO=float,
    )


def column_measurement(mechanism: Mechanism) -> Any:
    """Measurement of a column of labels under the Hamming distance: the number of rows whose label differs.

    Parameters
    ----------
    mechanism : Mechanism

    Returns
    -------
    opendp.mod.Measurement
        From lists of labels to lists of floats of one length; its map is the distance times the realised epsilon,
        rounded up. How many rows there are is public.

    Raises
    ------
    MissingExtra
        OpenDP is not installed.
    """
    dp, labels = _library(), frozenset(_checked(mechanism).labels.tolist())
    epsilon = Fraction(mechanism.realised_epsilon)
    return dp.m.make_user_measurement(
        dp.user_domain("OptrandColumns", lambda column: set(column) <= labels),
        dp.hamming_distance(),
        dp.max_divergence(),
        lambda column: mechanism.sample(column).tolist(),
        lambda distance: float_above(distance * epsilon),
        TO="Vec<f64>",
    )


def _checked(mechanism: Mechanism) -> Mechanism:
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput(f"mechanism is of type {type(mechanism).__name__}, expected an exact Mechanism: tabulate it")
    return mechanism


def _library() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise MissingExtra("this needs OpenDP: pip install 'optrand[opendp]'") from error
    dp.enable_features("contrib", "honest-but-curious")
    return dp
