"""Faults that attempts to break the certificate and the release have found, so that they stay mended."""

import math
from fractions import Fraction
from pathlib import Path

from commands import invoke

import optrand
from optrand.base._arithmetic import float_above
from optrand.cli import WRONG_INPUT


def test_rounding_up_zero_gives_a_zero_without_a_sign() -> None:
    # A single label used to be released with "realised epsilon -0.0".
    assert math.copysign(1.0, float_above(Fraction(0))) == 1.0
    record = optrand.randomize([2.0, 2.0], 1.0, labels=[2.0]).record
    assert math.copysign(1.0, record.realised_epsilon) == math.copysign(1.0, record.noisy_label_loss) == 1.0


RELEASE = ["--column", "y", "--labels", "0:3", "--epsilon", "1", "--force", "--no-ledger"]


def test_an_input_that_is_not_there_is_wrong_input_whatever_the_target(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("kept")
    invoke("randomize", str(tmp_path / "none.csv"), str(target), *RELEASE, code=WRONG_INPUT)
    assert target.read_text() == "kept"


def test_a_column_may_be_named_in_another_encoding(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b"a,\xff\n1,2\n2,3\n")
    arguments = ["randomize", str(source), str(tmp_path / "out.csv"), *RELEASE]
    arguments[arguments.index("y")] = "\udcff"
    invoke(*arguments, code=0)
    assert (tmp_path / "out.csv").read_bytes().startswith(b"a,\xff\n1,")
