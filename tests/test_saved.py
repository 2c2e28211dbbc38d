"""Files in `tests/saved` load, verify, and are saved again with the same bytes."""

from pathlib import Path

import pytest
from asserting import assert_error

import optrand
from optrand import checker

SAVED = Path(__file__).parent / "saved"
MECHANISMS = sorted(SAVED.glob("*.json"))


@pytest.mark.parametrize("path", MECHANISMS, ids=lambda path: path.stem)
def test_a_saved_mechanism_loads_and_verifies(path: Path, tmp_path: Path) -> None:
    mechanism = optrand.load(path)
    proof = optrand.certify(mechanism)
    assert proof.epsilon <= mechanism.problem.epsilon
    if path.stem != "no_dual":
        # Floats at 1.7e12 are 2**-12 apart, which costs 7e-9 at most: an eighth of its square.
        proof.require(gap=2e-8 if path.stem == "penalty_far" else 1e-12)
    assert checker.check(path.read_text()).epsilon == pytest.approx(proof.epsilon, rel=1e-12)
    mechanism.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("given", [3, None, [0.5]])
def test_what_is_no_path_is_refused_by_its_type(given: object) -> None:
    assert_error(f"path is of type {type(given).__name__}, expected the path", optrand.load, given)
