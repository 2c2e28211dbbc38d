"""A release with one of the papers' other randomizers: what is refused, what is told, and what is saved beside it."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from optrand import rr
from optrand.base import strict_json
from optrand.base.numerals import shown_spent
from optrand.baselines import DiscreteLaplace, DiscreteStaircase, LabelRandomizer, Laplace, Staircase
from optrand.certificates.certificate import certify
from optrand.cli import FAILED, UNVERIFIED, WRONG_INPUT, app
from optrand.errors import InvalidFile, InvalidInput
from optrand.mechanism.mechanism import load
from optrand.model.outputs import Interval
from optrand.release.baseline_job import BaselineJob
from optrand.release.declared import parse_clip
from optrand.release.job import LabelJob
from optrand.release.named import NAMES, lattice_step, named_randomizer, randomized_response
from optrand.release.paths import mechanism_path, randomizer_path, record_path
from optrand.release.randomizer_file import load_randomizer, save_randomizer
from optrand.release.table import read_labels
from optrand.release.table_job import TableJob
from optrand.sampling.entropy import SeededEntropy

HIDDEN = "9173"
"""A label that no message may repeat."""

FINITE = ("rr", "debiased-rr", "minimax")
DISCRETE = ("discrete-laplace", "discrete-staircase")
INEXACT = ("laplace", "staircase")

SIX = np.array([0.0, 1.0, 2.0, 4.0, 5.0, 8.0])

SIGMAS = 5
"""Sampled means may miss by that many standard errors: of some hundred seeded checks none does by chance."""


def job_of(name, *, labels=SIX, epsilon=1.0, clip_outputs=None, **options):
    named = named_randomizer(name, labels, epsilon=epsilon, clip_outputs=clip_outputs)
    return BaselineJob(labels=labels, randomizer=named, **{"allow_inexact": True, **options})


def listing(folder):
    """Every file below a folder, with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to work in, with a table of two hundred labels 0, 1 and 2."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("id,y\n" + "".join(f"{i:03},{i * i % 3}\n" for i in range(200)))
    return tmp_path


def randomized(name, *more, source="in.csv", labels="0:2", epsilon="1"):
    arguments = ["randomize", source, "out.csv", "--label", "y", "--labels", labels, "--epsilon", epsilon]
    return CliRunner().invoke(app, [*arguments, "--no-ledger", "--randomizer", name, *more])


def facts(result):
    """The printed lines, by their first words."""
    lines = [line.split("  ", 1) for line in result.stdout.splitlines() if "  " in line]
    return {name: fact.strip() for name, fact in lines}


def one_line(result):
    """The error of a command that failed: one line, no traceback, no secret."""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert HIDDEN not in result.stderr + result.stdout
    return result.stderr


# Randomizers by name


def test_every_name_is_known_here():
    assert sorted(NAMES) == sorted(FINITE + DISCRETE + INEXACT)


@pytest.mark.parametrize(("name", "kind"), [("laplace", Laplace), ("discrete-laplace", DiscreteLaplace)])
def test_laplace_noise_is_scaled_to_the_range_of_the_labels(name, kind):
    assert named_randomizer(name, SIX, epsilon=0.5) == kind(SIX, 0.5, sensitivity=8.0)


def test_staircases_have_their_best_shape():
    labels = np.arange(53.0)
    assert named_randomizer("staircase", labels, epsilon=1.0) == Staircase(labels, 1.0)
    variances = [DiscreteStaircase(labels, 1.0, rise=rise).moments([0]).variances[0] for rise in range(1, 53)]
    named = named_randomizer("discrete-staircase", labels, epsilon=1.0)
    assert named.rise == 1 + int(np.argmin(variances))


@pytest.mark.parametrize(
    ("labels", "step"),
    [
        ([0, 1, 2], 1.0),
        ([-4, 0, 6], 2.0),
        ([0.1, 0.3, 0.7], 0.2),
        ([0, 0.5, 0.75], 0.25),
        ([1e6, 1e6 + 0.01], 0.01),
        ([3, 1e12], 1e12 - 3),
    ],
)
def test_the_lattice_has_the_longest_step_on_which_all_labels_are(labels, step):
    assert lattice_step(np.array(labels)) == step
    noise = named_randomizer("discrete-laplace", np.array(labels), epsilon=1.0)
    assert noise.step == step
    noisy = noise.sample(labels, source=SeededEntropy(0))
    assert np.abs(noise.positions(noisy, "value")).max() < 1e3


def test_labels_on_no_lattice_of_floats_are_refused():
    with pytest.raises(InvalidInput, match="round them to fewer digits"):
        named_randomizer("discrete-laplace", np.array([0.1, 1e16 + 2]), epsilon=1.0)
    with pytest.raises(InvalidInput, match=r"more than 2\*\*50 steps"):
        named_randomizer("discrete-staircase", np.array([0, 1, 2.0**52 + 1]), epsilon=1.0)


@pytest.mark.parametrize("name", DISCRETE + INEXACT)
def test_noise_on_a_single_label_is_refused(name):
    with pytest.raises(InvalidInput, match="one label"):
        named_randomizer(name, np.array([3.0]), epsilon=1.0)


def test_a_release_by_noise_has_no_mechanism():
    release = job_of("laplace").run(SIX)
    assert release.summary.outputs is None
    with pytest.raises(InvalidInput, match="there is no table"):
        _ = release.mechanism


@pytest.mark.parametrize("name", FINITE)
def test_a_single_label_comes_back_as_it_is(name):
    release = job_of(name, labels=np.array([7.5])).run([7.5, 7.5])
    assert release.values.tolist() == [7.5, 7.5]
    assert release.summary.realised_epsilon == 0.0
    assert release.summary.noisy_label_loss < 1e-30


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_randomized_response_is_that_of_the_closed_form_with_its_proof(epsilon):
    mechanism = randomized_response(SIX[::-1], epsilon)
    closed = rr(SIX, epsilon)
    assert (mechanism.weights / mechanism.total).astype(float) == pytest.approx(closed.randomizer.matrix, rel=1e-13)
    assert mechanism.dual.alpha == pytest.approx(closed.dual.alpha, rel=1e-13)
    proof = certify(mechanism, exact=True)
    assert abs(proof.gap) < 1e-12
    assert epsilon * (1 - 1e-12) < proof.epsilon <= epsilon
    assert mechanism.realised_ratio == mechanism.ratio


@pytest.mark.parametrize("text", ["", "1", "1:2:3", "3:1", "1:1", "nan:1", "0:inf", "1_0:20", "a:b"])
def test_an_interval_without_meaning_is_refused(text):
    with pytest.raises(InvalidInput):
        parse_clip(text)


# The job on arrays


@pytest.mark.parametrize("clip_outputs", [None, Interval(-2, 10)])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.7, 3.0])
def test_what_is_told_is_what_is_drawn(name, epsilon, clip_outputs):
    if clip_outputs is not None and name in FINITE:
        with pytest.raises(InvalidInput, match="adds no noise that could be clipped"):
            job_of(name, epsilon=epsilon, clip_outputs=clip_outputs)
        return
    job = job_of(name, epsilon=epsilon, clip_outputs=clip_outputs)
    each = 4000
    release = job.run(np.repeat(SIX, each).reshape(SIX.size, each), source=SeededEntropy(11))
    assert release.values.shape == (SIX.size, each)
    errors, summary = release.values - SIX[:, np.newaxis], release.summary
    means, squares = errors.mean(axis=1), (errors**2).mean(axis=1)
    # Every label's mean error is at most the bias told, up to the noise of the sample.
    slack = SIGMAS * errors.std(axis=1) / math.sqrt(each)
    assert (np.abs(means) <= summary.bias + slack).all()
    assert (np.abs(means) >= summary.bias - slack).any()
    slack = SIGMAS * (errors**2).std(axis=1) / math.sqrt(each)
    assert (errors.var(axis=1) <= summary.variance + slack).all()
    assert (errors.var(axis=1) >= summary.variance - 2 * slack).any()
    assert abs(squares.mean() / 2 - summary.noisy_label_loss) < math.sqrt((slack**2).sum()) / (2 * SIX.size)
    if clip_outputs is not None:
        assert release.values.min() >= -2
        assert release.values.max() <= 10
    assert (summary.rows, summary.labels, summary.epsilon) == (SIX.size * each, 6, epsilon)
    assert summary.epsilon * (1 - 1e-12) <= summary.realised_epsilon <= epsilon
    assert summary.exact is (name not in INEXACT)
    assert not summary.private


@pytest.mark.parametrize("name", NAMES)
def test_labels_are_drawn_by_the_randomizer_and_nothing_else(name):
    job, values = job_of(name), [0.0, 8.0, 4.0, 4.0] * 10
    drawn = job.randomizer.sample(np.array(values), source=SeededEntropy(5))
    assert job.run(values, source=SeededEntropy(5)).values.tolist() == drawn.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_is_told_depends_on_the_labels(name):
    job = job_of(name, clip=True)
    first, second = (job.run(values) for values in ([0.0] * 30, [99.0, -4.0, 5.0] * 10))
    assert first.summary == second.summary
    assert first.randomizer is second.randomizer
    assert first.summary.private
    assert "values=" not in repr(first)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("clip", [False, True])
def test_labels_outside_the_declared_set_are_counted_but_not_named(name, clip):
    values = [0.0, 5.0, 3.9173] if clip else [0.0, 9173.0, 3.9173]
    with pytest.raises(InvalidInput, match="at least one label is not among the 6 declared ones") as caught:
        job_of(name, clip=clip).run(values)
    assert HIDDEN not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_clipping_moves_labels_to_the_ends(name):
    job = job_of(name, clip=True)
    moved, given = (job.run(values, source=SeededEntropy(2)).values for values in ([-7.0, 4.0, 99.0], [0.0, 4.0, 8.0]))
    assert moved.tolist() == given.tolist()


@pytest.mark.parametrize("name", INEXACT)
@pytest.mark.parametrize("clip_outputs", [None, Interval(0, 8)])
def test_floating_point_noise_is_refused_unless_it_is_allowed(name, clip_outputs):
    with pytest.raises(InvalidInput, match="holds for real numbers only"):
        job_of(name, clip_outputs=clip_outputs, allow_inexact=False)
    assert job_of(name, clip_outputs=clip_outputs).exact is False


@pytest.mark.parametrize("name", FINITE + DISCRETE)
def test_exact_randomizers_need_no_permission(name):
    assert job_of(name, allow_inexact=False).exact is True


@pytest.mark.parametrize("name", NAMES)
def test_every_named_randomizer_satisfies_one_protocol(name):
    named = named_randomizer(name, SIX, epsilon=1.0)
    assert isinstance(named, LabelRandomizer)
    assert named.exact is (name not in INEXACT)
    assert named.sample(SIX[::-1], source=SeededEntropy(1)).shape == SIX.shape
    whole, part = named.moments(SIX), named.moments(SIX[[4, 1]])
    assert part.biases.tolist() == whole.biases[[4, 1]].tolist()
    assert part.variances.tolist() == whole.variances[[4, 1]].tolist()
    assert named.epsilon * (1 - 1e-12) <= named.realised_epsilon <= named.epsilon
    with pytest.raises(InvalidInput, match=r"other labels|outside the declared labels"):
        named.moments([0.0, 9.0])


def test_options_without_meaning_are_refused():
    with pytest.raises(InvalidInput, match="other labels"):
        BaselineJob(labels=SIX, randomizer=randomized_response(np.arange(6), 1.0))
    with pytest.raises(InvalidInput, match="outside the declared labels"):
        BaselineJob(labels=np.arange(10), randomizer=DiscreteLaplace(SIX, 1.0))
    with pytest.raises(InvalidInput, match="of type str, expected a Mechanism or one of Laplace"):
        BaselineJob(labels=SIX, randomizer="rr")
    with pytest.raises(InvalidInput, match="expected one of rr"):
        named_randomizer("gauss", SIX, epsilon=1.0)


@pytest.mark.parametrize("name", DISCRETE + INEXACT)
def test_noise_without_a_finite_variance_is_refused(name):
    with pytest.raises(InvalidInput, match="moments of the noise are no floats"):
        job_of(name, epsilon=1e-200)


def test_ten_thousand_labels_are_randomized_as_arcs():
    labels = np.arange(10_000.0)
    release = job_of("rr", labels=labels, epsilon=20.0).run(labels, source=SeededEntropy(1))
    # A label stays with probability E / (E + k - 1), here 1 - 2e-5.
    assert (release.values != labels).sum() <= 5
    assert release.randomizer.arcs is not None


# The job on files


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_released_with_what_drew_it_beside_it(here, name):
    job = TableJob(job=job_of(name, labels=np.arange(3.0)), column="y")
    summary = job.run("in.csv", "out.csv")
    noisy = read_labels("out.csv", "y")
    assert summary.rows == noisy.size == 200
    if name in FINITE:
        beside = mechanism_path("out.csv")
        mechanism = load(beside)
        assert mechanism == job.job.randomizer
        assert set(noisy) <= set(mechanism.outputs)
    else:
        beside = randomizer_path("out.csv")
        assert load_randomizer(beside) == job.job.randomizer
    assert job.beside("out.csv") == beside
    assert sorted(path.name for path in here.iterdir()) == [
        "in.csv",
        "out.csv",
        *sorted([beside.name, "out.csv.release.json"]),
    ]


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "target",
    ["optrand.release.plan.save_randomizer", "optrand.base.files.publish", "os.fsync", "os.link"],
    ids=["while saving", "while renaming the table", "while flushing", "while renaming"],
)
def test_a_full_disk_leaves_nothing_behind(here, monkeypatch, target):
    before = listing(here)
    job = TableJob(job=job_of("discrete-laplace", labels=np.arange(3.0)), column="y")
    with monkeypatch.context() as patch:
        patch.setattr(target, full_disk)
        with pytest.raises(OSError, match="No space left"):
            job.run("in.csv", "out.csv")
    assert listing(here) == before
    job.run("in.csv", "out.csv")


def test_a_randomizer_is_on_the_disk_before_the_table_has_its_name(here, monkeypatch):
    seen = []

    def saved(*arguments, **options):
        seen.append(sorted(path.name for path in here.iterdir() if not path.name.startswith(".")))
        save_randomizer(*arguments, **options)

    monkeypatch.setattr("optrand.release.plan.save_randomizer", saved)
    TableJob(job=job_of("discrete-staircase", labels=np.arange(3.0)), column="y").run("in.csv", "out.csv")
    assert seen == [["in.csv"]]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_of_the_other_kind_is_never_left_beside_a_new_table(here, overwrite):
    noise, response = (job_of(name, labels=np.arange(3.0)) for name in ("discrete-laplace", "rr"))
    best = LabelJob(labels=np.arange(3.0), epsilon=1.0)
    TableJob(job=noise, column="y").run("in.csv", "out.csv")
    (here / "out.csv").unlink()
    before = listing(here)
    for other in (response, best):
        with pytest.raises(InvalidInput, match=r"out\.csv\.randomizer\.json exists and would speak for labels"):
            TableJob(job=other, column="y", overwrite=overwrite).run("in.csv", "out.csv")
    assert listing(here) == before
    randomizer_path("out.csv").unlink()
    record_path("out.csv").unlink()
    TableJob(job=response, column="y").run("in.csv", "out.csv")
    with pytest.raises(InvalidInput, match=r"out\.csv\.mechanism\.json exists|out\.csv exists"):
        TableJob(job=noise, column="y", overwrite=overwrite).run("in.csv", "out.csv")


def test_a_source_that_others_can_repeat_writes_no_table(here):
    with pytest.raises(InvalidInput, match="SeededEntropy draws words that others can draw again"):
        TableJob(job=job_of("rr", labels=np.arange(3.0)), column="y").run("in.csv", "out.csv", source=SeededEntropy(4))
    assert [path.name for path in here.iterdir()] == ["in.csv"]


# The file of a randomizer


@pytest.mark.parametrize("clip", [None, Interval(-1, 9)])
@pytest.mark.parametrize("name", DISCRETE + INEXACT)
def test_saved_noise_comes_back_as_it_was(tmp_path, name, clip):
    noise = named_randomizer(name, SIX, epsilon=0.3, clip_outputs=clip)
    save_randomizer(noise, tmp_path / "n.json", labels=SIX)
    assert load_randomizer(tmp_path / "n.json") == noise
    document = json.loads((tmp_path / "n.json").read_text())
    assert (document["kind"], document["epsilon"], document["exact"]) == (name, 0.3, name in DISCRETE)
    moments = noise.moments(SIX)
    assert document["moments"] == {"biases": moments.biases.tolist(), "variances": moments.variances.tolist()}
    assert document["clip"] == (None if clip is None else {"low": -1.0, "high": 9.0})
    with pytest.raises(InvalidInput, match="exists"):
        save_randomizer(noise, tmp_path / "n.json", labels=SIX)
    with pytest.raises(InvalidFile, match="not an optrand mechanism"):
        load(tmp_path / "n.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "gauss"}, "kind is unknown"),
        ({"kind": 1.0}, "kind is unknown"),
        ({"kind": "discrete-laplace"}, r"parameters has the unknown field\(s\) 'rise'"),
        ({"labels": [8.0, 0.0]}, "do not strictly increase"),
        ({"labels": [0, 8]}, "a bare integer"),
        ({"labels": [0.0, 1.0, 2.0, 4.0, 5.0, 9.0]}, "no|less than the range"),
        ({"epsilon": 1.5}, "moments are not those"),
        ({"epsilon": -1.0}, "does not hold a private randomizer"),
        ({"epsilon": 1e-200}, "moments of the noise are no floats"),
        ({"epsilon": "1"}, "epsilon is a string"),
        ({"sensitivity": 4.0}, "less than the range of the labels"),
        ({"parameters": {"step": 1.0, "rise": 2.0}}, "expected an integer as a string of digits"),
        ({"parameters": {"step": 1.0, "rise": "9"}}, "rise is 9"),
        ({"parameters": {"step": 1.0, "rise": "1"}}, "moments are not those"),
        ({"parameters": {"step": 3.0, "rise": "1"}}, "whole number of steps"),
        ({"parameters": {"step": 1.0}}, "parameters lacks"),
        ({"clip": {"low": 3.0, "high": 1.0}}, "is empty"),
        ({"clip": {"low": 0.0, "high": 8.0}}, "moments are not those"),
        ({"clip": [0.0, 8.0]}, "clip is a list"),
        ({"exact": False}, "does not say rightly"),
        ({"exact": 1}, "does not say rightly"),
        ({"moments": {"biases": [0.0] * 6, "variances": [1.0] * 6}}, "moments are not those"),
        ({"moments": {"biases": [1.0] * 6, "variances": None}}, "moments.variances is null"),
        ({"moments": {"biases": [0.0] * 5, "variances": [1.0] * 6}}, "has 5 entries"),
        ({"more": 1.0}, "unknown"),
    ],
)
def test_a_file_that_is_not_so_is_refused_even_with_a_right_digest(tmp_path, changes, message):
    noise = named_randomizer("discrete-staircase", SIX, epsilon=1.0)
    assert noise.rise not in (1, 9)
    save_randomizer(noise, tmp_path / "n.json", labels=SIX)
    document = {**json.loads((tmp_path / "n.json").read_text()), **changes}
    document["digest"] = strict_json.digest(document)
    (tmp_path / "n.json").write_text(json.dumps(document))
    with pytest.raises(InvalidFile, match=message):
        load_randomizer(tmp_path / "n.json")


def test_an_edited_file_is_refused_and_an_indented_one_is_not(tmp_path):
    noise = named_randomizer("laplace", SIX, epsilon=1.0)
    path = tmp_path / "n.json"
    save_randomizer(noise, path, labels=SIX)
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document, indent=2))
    assert load_randomizer(path) == noise
    path.write_text(json.dumps({**document, "epsilon": 0.5}))
    with pytest.raises(InvalidFile, match="digest"):
        load_randomizer(path)
    for damaged in (b"", b"\xff", b"[]", b'{"format": "optrand.mechanism"}', path.read_bytes()[:-5]):
        path.write_bytes(damaged)
        with pytest.raises(InvalidFile):
            load_randomizer(path)


# The command


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", FINITE)
def test_the_command_with_a_finite_mechanism(name):
    result = randomized(name)
    assert result.exit_code == 0, result.stderr
    told, mechanism = facts(result), load("out.csv.mechanism.json")
    assert told["randomizer"] == name
    assert told["rows"] == "200"
    assert told["budget"] == "1.0: all of it for the labels, no prior is needed"
    assert told["privacy"].startswith("exact")
    assert told["saved"] == "out.csv.mechanism.json"
    assert told["realised epsilon"] == f"{shown_spent(mechanism.realised_epsilon, mechanism.epsilon)} (at most)"
    assert float(told["largest bias"]) == pytest.approx(mechanism.bias, rel=1e-2, abs=1e-12)
    assert set(read_labels("out.csv", "y")) <= set(mechanism.outputs)
    verified = CliRunner().invoke(app, ["verify", "out.csv.mechanism.json"])
    assert verified.exit_code == 0, verified.stderr


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", DISCRETE)
def test_the_command_with_exact_noise_clipped(name):
    result = randomized(name, "--clip-outputs", "-1:3")
    assert result.exit_code == 0, result.stderr
    told, noise = facts(result), load_randomizer("out.csv.randomizer.json")
    assert noise.clip == Interval(-1, 3)
    verified = CliRunner().invoke(app, ["verify", "out.csv.randomizer.json"])
    assert (verified.exit_code, verified.stdout.splitlines()[-1]) == (0, "verified")
    assert facts(verified)["clipped to"] == "-1.0 to 3.0"
    assert told["outputs"] == "anywhere from -1.0 to 3.0, in steps of 1.0"
    assert told["privacy"].startswith("exact")
    assert told["saved"] == "out.csv.randomizer.json"
    assert set(read_labels("out.csv", "y")) <= {-1.0, 0.0, 1.0, 2.0, 3.0}
    assert float(told["noisy label loss"].split()[0]) == pytest.approx(
        noise.moments([0, 1, 2]).loss([1 / 3] * 3), rel=1e-5
    )


@pytest.mark.parametrize("name", INEXACT)
def test_the_command_refuses_floating_point_noise_or_says_plainly_what_it_is_worth(here, name):
    before = listing(here)
    refused = randomized(name)
    assert refused.exit_code == WRONG_INPUT
    assert "privacy holds for real numbers only" in one_line(refused)
    assert listing(here) == before
    result = randomized(name, "--allow-inexact")
    assert result.exit_code == 0, result.stderr
    told = facts(result)
    assert told["privacy"].startswith("holds for real numbers ONLY")
    assert told["realised epsilon"] == "1.0 (at most, for real numbers)"
    assert load_randomizer("out.csv.randomizer.json").exact is False
    verified = CliRunner().invoke(app, ["verify", "out.csv.randomizer.json"])
    assert (verified.exit_code, verified.stdout.splitlines()[-1]) == (0, "verified, for real numbers only")


@pytest.mark.usefixtures("here")
def test_saved_noise_that_was_edited_is_not_verified_and_has_no_gap():
    assert randomized("discrete-laplace").exit_code == 0
    path = Path("out.csv.randomizer.json")
    asked = CliRunner().invoke(app, ["verify", str(path), "--gap", "1e-6"])
    assert asked.exit_code == WRONG_INPUT
    assert "leave out --gap" in one_line(asked)
    path.write_text(path.read_text().replace('"epsilon":1.0', '"epsilon":0.5'))
    edited = CliRunner().invoke(app, ["verify", str(path)])
    assert edited.exit_code == UNVERIFIED
    assert "digest" in one_line(edited)


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("gauss", [], "expected one of optimal, rr-with-prior"),
        ("rr", ["--clip-outputs", "0:2"], "no noise that could be clipped"),
        ("discrete-laplace", ["--clip-outputs", "0:2.5"], "no whole number of steps"),
        ("discrete-laplace", ["--clip-outputs", "2:0"], "is empty"),
        ("discrete-laplace", ["--clip-outputs", "line"], "expected LOW:HIGH"),
        ("rr", ["--prior-epsilon", "0.1"], "--prior-epsilon means nothing to 'rr'"),
        ("rr", ["--public-prior", "in.csv", "--outputs", "grid:9"], "--public-prior, --outputs means nothing"),
        ("rr", ["--bias-penalty", "0"], "--bias-penalty means nothing"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_the_command(here, name, more, message):
    before = listing(here)
    result = randomized(name, *more)
    assert result.exit_code == WRONG_INPUT
    assert message in one_line(result)
    assert listing(here) == before


@pytest.mark.usefixtures("here")
def test_an_interval_to_clip_to_needs_noise():
    arguments = ["randomize", "in.csv", "out.csv", "--label", "y", "--labels", "0:2", "--epsilon", "1"]
    result = CliRunner().invoke(app, [*arguments, "--clip-outputs", "0:2"])
    assert result.exit_code == WRONG_INPUT
    assert "use --outputs interval:LOW:HIGH" in one_line(result)


@pytest.mark.parametrize("name", NAMES)
def test_no_message_repeats_a_label(here, monkeypatch, name):
    (here / "in.csv").write_text(f"y\n1\n{HIDDEN}\n2\n")
    before = listing(here)
    result = randomized(name, "--allow-inexact")
    assert result.exit_code == WRONG_INPUT
    assert "at least one label is not among the 3 declared ones" in one_line(result)
    assert listing(here) == before

    def broken(*_, **__):
        raise ValueError(f"could not draw for {HIDDEN}")

    monkeypatch.setattr("optrand.release.batch.distinct_cells", broken)
    result = randomized(name, "--allow-inexact")
    assert result.exit_code == FAILED
    assert "ValueError" in one_line(result)
    assert listing(here) == before
