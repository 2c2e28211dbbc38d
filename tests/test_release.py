"""The main job through the library: budgets, what may be told, files that appear whole or not at all."""

from __future__ import annotations

import csv
import errno
import gzip
import math
import os
import signal
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optrand.base.files
import optrand.release.job
from optrand import Grid, Interval, feasible_output_set, regression, solve
from optrand.base.files import check_target, new_file, publish
from optrand.certificates.certificate import certify
from optrand.data import WEEKS_LABEL, weeks_worked_counts_path, weeks_worked_path
from optrand.errors import Infeasible, InvalidInput, SolverFailed, SpentNote
from optrand.mechanism.mechanism import Mechanism, load
from optrand.model.outputs import in_words
from optrand.release.declared import EvenGrid, PublicPrior, parse_labels, parse_outputs, read_prior
from optrand.release.diagnosis import Diagnosis
from optrand.release.job import LabelJob
from optrand.release.paid_prior import PaidPrior, load_paid_prior
from optrand.release.paths import mechanism_path, paid_prior_path
from optrand.release.streams.csv_files import CsvSink
from optrand.release.table import read_labels
from optrand.release.table_job import TableJob
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import PRIOR_SHARE, EstimatedPrior, private_prior, split_at
from optrand.sampling.smoothing import smoothed_prior

GAP = 1e-9
"""What every job inside the solved range must verify."""


def listing(folder):
    """Every file below a folder, with its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def table(tmp_path):
    """Two hundred rows with labels 0, 1, 2 in column y."""
    path = tmp_path / "in.csv"
    path.write_text("id,y,note\n" + "".join(f"{i:03},{i * i % 3},n{i}\n" for i in range(200)))
    return path


def table_job(overwrite=False, **options):
    return TableJob(
        job=LabelJob(**{"labels": np.arange(3.0), "epsilon": 1.0, **options}), column="y", overwrite=overwrite
    )


# What is declared


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("0:3", [0, 1, 2, 3]),
        ("-2:2:2", [-2, 0, 2]),
        ("0:1:0.1", [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]),
        ("1e-3:3e-3:1e-3", [0.001, 0.002, 0.003]),
        ("5:5", [5]),
        ("7", [7]),
        ("7, 1,2.5", [1, 2.5, 7]),
        ("-0.0,1", [0, 1]),
    ],
)
def test_labels_are_the_floats_nearest_to_what_was_written(text, labels):
    assert parse_labels(text).tolist() == labels


def test_labels_from_a_file(tmp_path):
    (tmp_path / "labels.txt").write_bytes(b"\xef\xbb\xbf3\r\n1, 2\n\n0.5\n")
    assert parse_labels(f"@{tmp_path / 'labels.txt'}").tolist() == [0.5, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("52:0", "run downwards: write the lower end first, 0:52"),
        ("0:10:3", "do not reach their high end"),
        ("0:1:0", "step that is not above 0"),
        ("0:1:-1", "step that is not above 0"),
        ("0:1:1:1", "4 parts"),
        ("0:", "an end of '0:' is not a number"),
        ("", "label 1 of --labels is not a number"),
        ("1,,2", "label 2 of --labels is not a number"),
        ("1,x", "label 2 of --labels is not a number"),
        ("nan,1", "beyond the range of floats"),
        ("0:inf", "beyond the range of floats"),
        ("0:1e999999999", "beyond the range of floats"),
        ("1,1.0", "repeats 1 value"),
        ("0,-0.0", "repeats 1 value"),
        ("0,9007199254740993", "beyond 2**53"),
        ("0:1_0", "an end of '0:1_0' is not a number"),
        ("1_0", "label 1 of --labels is not a number"),
        ("1,\u0663", "label 2 of --labels is not a number"),
        ("0:1e9", "1000000001 labels, expected at most"),
        ("@nowhere.txt", "nowhere.txt cannot be read"),
    ],
)
def test_labels_without_meaning_are_refused(text, message):
    with pytest.raises(InvalidInput) as caught:
        parse_labels(text)
    assert message in str(caught.value)


def test_a_file_of_labels_is_not_repeated_in_errors(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_text("1\nsecret\n")
    with pytest.raises(InvalidInput, match="entry 2 of") as caught:
        parse_labels(f"@{path}")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        "label,count\n0,6\n1,3\n2,1\n",
        "2,1\n0,6\n1,3\n",
        "0,0.6\r\n1.0,0.3\r\n2,0.1\r\n",
        "\ufeffy,p\n0, 6e20 \n1,3e20\n\n2,1e20",
    ],
)
def test_a_prior_file_holds_counts_or_probabilities_with_or_without_a_header(tmp_path, content):
    (tmp_path / "prior.csv").write_text(content, encoding="utf-8")
    prior = read_prior(tmp_path / "prior.csv", np.arange(3.0))
    assert prior.probabilities.tolist() == [0.6, 0.3, 0.1]
    assert prior.absent == 0


def test_labels_that_a_prior_file_does_not_list_have_prior_zero(tmp_path):
    (tmp_path / "prior.csv").write_text("1,5\n")
    prior = read_prior(tmp_path / "prior.csv", np.arange(3.0))
    assert prior.probabilities.tolist() == [0, 1, 0]
    assert prior.absent == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("label,count\n", "no count above 0"),
        ("0,0\n1,0\n", "no count above 0"),
        ("0,1\n1,-1\n", "negative"),
        ("0,1\n1\n", "1 cells, expected two"),
        ("0,1\n9,1\n", "is not declared"),
        ("0,1\n0.0,1\n", "comes twice"),
        ("0,1\n1,x\n", "the count in line 2"),
        ("0,1\nx,1\n", "the label in line 2"),
        ("0,nan\n", "beyond the range of floats"),
        ("0,1e400\n", "the count in line 1"),
        ("1e310,1\n", "the label in line 1"),
        ("1_0,1\n", "the label in line 1"),
        ("0,1_0\n", "the count in line 1"),
        ("", "no count above 0"),
    ],
)
def test_a_prior_file_without_meaning_is_refused(tmp_path, content, message):
    (tmp_path / "prior.csv").write_text(content)
    with pytest.raises(InvalidInput) as caught:
        read_prior(tmp_path / "prior.csv", np.arange(3.0))
    assert message in str(caught.value)


# The job on arrays


def test_the_mean_of_the_noisy_labels_is_that_of_the_true_ones():
    weeks = read_labels(weeks_worked_path(), WEEKS_LABEL)
    job = LabelJob(labels=np.arange(53), epsilon=1.0)
    release = job.run(weeks, source=SeededEntropy(20))
    summary = release.summary
    # Given the mechanism, rows are independent, and each is unbiased with the variance of its label.
    variances = release.mechanism.randomizer.variances[weeks.astype(int)]
    standard_error = math.sqrt(variances.sum()) / weeks.size
    assert abs(release.values.mean() - weeks.mean()) < 5 * standard_error
    # The same for each half of the labels, so that errors cannot cancel.
    for part in (weeks == 0, weeks == 52):
        standard_error = math.sqrt(variances[part].sum()) / part.sum()
        assert abs(release.values[part].mean() - weeks[part].mean()) < 5 * standard_error
    assert (summary.rows, summary.labels, summary.allowed) == (20_000, 53, "anywhere on the real line")
    assert summary.gap <= 1e-12
    assert summary.bias <= 1e-12
    assert summary.realised_epsilon <= 1.0
    assert not summary.private
    assert "values" not in repr(release)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 8.0])
def test_both_budgets_together_stay_within_the_whole(epsilon):
    release = LabelJob(labels=np.arange(5), epsilon=epsilon).run([0, 1, 4] * 100, source=SeededEntropy(3))
    summary, split = release.summary, release.summary.split
    assert Fraction(split.prior) + Fraction(split.labels) <= Fraction(epsilon)
    assert split.prior == min(math.sqrt(5 / 300), PRIOR_SHARE * epsilon)
    assert release.mechanism.epsilon == split.labels
    assert 0.99 * epsilon < summary.realised_epsilon <= epsilon
    assert summary.gap <= GAP
    assert certify(release.mechanism, exact=True).bias < 1e-9 * 5


def test_a_public_prior_spends_nothing():
    prior = PublicPrior(np.array([0.7, 0.2, 0.1]))
    release = LabelJob(labels=np.arange(3), epsilon=1.0, public_prior=prior).run([0, 1, 2], source=SeededEntropy(3))
    assert (release.summary.split.prior, release.summary.split.labels) == (0.0, 1.0)
    assert release.mechanism.problem.prior.tolist() == [0.7, 0.2, 0.1]
    assert release.mechanism.epsilon == 1.0
    assert "trusted" in release.summary.prior


def test_labels_that_a_public_prior_leaves_out_are_counted():
    prior = PublicPrior(np.array([0.5, 0.0, 0.5]), absent=1)
    release = LabelJob(labels=np.arange(3), epsilon=1.0, public_prior=prior).run([1, 1], source=SeededEntropy(3))
    assert "1 label(s) that it does not list have prior 0" in release.summary.prior


def test_a_budget_for_the_prior_can_be_named():
    release = LabelJob(labels=np.arange(3), epsilon=1.0, prior_epsilon=0.25).run([0, 1, 2], source=SeededEntropy(3))
    assert (release.summary.split.prior, release.summary.split.labels) == (0.25, 0.75)


def test_the_prior_is_the_private_one_and_the_labels_are_drawn_from_the_mechanism():
    values = [0, 0, 2, 1, 0] * 20
    release = LabelJob(labels=np.arange(3), epsilon=1.0).run(values, source=SeededEntropy(8))
    again = SeededEntropy(8)
    estimate = private_prior([60, 20, 20], release.summary.split.prior, source=again)
    assert release.mechanism.problem.prior.tolist() == smoothed_prior(estimate, 100).tolist()
    assert release.values.tolist() == release.mechanism.sample(np.array(values, dtype=float), source=again).tolist()


def test_nothing_that_is_told_depends_on_the_true_labels_but_through_the_prior(monkeypatch):
    """With the noisy prior held fixed, two tables of the same number of rows give the same report and mechanism."""
    fixed = EstimatedPrior((50, 25, 25), 0.05)
    monkeypatch.setattr(optrand.release.job, "private_prior", lambda *_, **__: fixed)
    job = LabelJob(labels=np.arange(3), epsilon=1.0, clip=True)
    first, second = (job.run(values) for values in ([0.0] * 50, [2.0, 1.0, 99.0, -5.0, 0.0] * 10))
    assert first.summary == second.summary
    assert first.mechanism == second.mechanism
    assert first.summary.private


def refusal(job, values):
    with pytest.raises(InvalidInput) as caught:
        job.run(values)
    assert not hasattr(caught.value, "__notes__")
    return str(caught.value)


def test_labels_outside_the_declared_set_stop_the_job_and_are_neither_counted_nor_named():
    job = LabelJob(labels=np.arange(3), epsilon=1.0)
    messages = {refusal(job, values) for values in ([0, 1, 71.5, -71.5, 0.715], [71.5], [0] * 70 + [1.5, 3])}
    assert len(messages) == 1
    assert messages.pop().startswith("at least one label is not among the 3 declared ones; nothing was written")


def test_the_owner_may_have_what_is_wrong_counted_and_nothing_is_spent(monkeypatch):
    monkeypatch.setattr(optrand.release.job, "private_prior", None)
    job = LabelJob(labels=np.arange(3), epsilon=1.0)
    values = [0, 2, 71.5, -71.5, 0.715, None, None, math.nan, "x", True, 2**53 + 1]
    assert job.diagnose(values) == Diagnosis(rows=11, missing=2, not_numbers=4, undeclared=3)
    assert replace(job, clip=True).diagnose(values) == Diagnosis(rows=11, missing=2, not_numbers=4, undeclared=1)
    assert not job.diagnose([0, 7]).fine
    assert job.diagnose([[0, 1], [2, 2]]) == Diagnosis(rows=4, missing=0, not_numbers=0, undeclared=0)
    assert job.diagnose([0, 1]).fine
    assert job.diagnose([None]) == Diagnosis(rows=1, missing=1, not_numbers=0, undeclared=0)


def test_clipping_moves_labels_to_the_ends_and_no_further():
    job = LabelJob(labels=np.arange(3), epsilon=1.0, clip=True)
    clipped = job.run([-5.0, 1.0, 9.0], source=SeededEntropy(1))
    assert clipped.values.tolist() == job.run([0.0, 1.0, 2.0], source=SeededEntropy(1)).values.tolist()
    with pytest.raises(InvalidInput, match=r"at least one label .*: round them first"):
        job.run([-5.0, 0.715, 9.0])


def test_one_label_is_returned_as_it_is_and_spends_nothing():
    release = LabelJob(labels=[7.5], epsilon=1.0).run([7.5] * 3)
    assert release.values.tolist() == [7.5] * 3
    assert release.summary.realised_epsilon < 1e-9
    assert release.summary.split.prior == 0
    assert release.summary.noisy_label_loss == 0


def test_one_row_and_more_labels_than_rows():
    release = LabelJob(labels=np.arange(20), epsilon=1.0).run([3], source=SeededEntropy(1))
    assert release.values.shape == (1,)
    assert release.values[0] in release.mechanism.outputs
    assert release.summary.gap <= GAP


def test_labels_may_be_declared_in_any_order_and_given_in_any_shape():
    job = LabelJob(labels=[2, -1.5, 0], epsilon=1.0)
    assert job.labels.tolist() == [-1.5, 0, 2]
    assert job.run([[0, 2], [-1.5, 2]], source=SeededEntropy(1)).values.shape == (2, 2)


def test_a_prior_that_drowns_in_noise_is_uniform_and_says_so():
    job = LabelJob(labels=np.arange(2), epsilon=0.5)
    spent = PRIOR_SHARE * 0.5
    seed = next(s for s in range(100) if private_prior([1, 0], spent, source=SeededEntropy(s)).uniform)
    release = job.run([0], source=SeededEntropy(seed))
    assert release.mechanism.problem.prior.tolist() == [0.5, 0.5]
    assert "so it is uniform" in release.summary.prior


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": 0.0},
        {"epsilon": True},
        {"epsilon": "1"},
        {"epsilon": math.nan},
        {"epsilon": 701.0},
        {"labels": []},
        {"labels": [1.0, 1.0]},
        {"labels": [0.0, -0.0]},
        {"labels": [0.0, math.inf]},
        {"labels": [0, 2**53 + 1]},
        {"prior_epsilon": 1.0},
        {"prior_epsilon": 0.0},
        {"outputs": "line"},
        {"outputs": Interval(0, 2)},
        {"outputs": Grid([0, 1, 2])},
        {"bias_penalty": -1.0},
        {"bias_penalty": math.nan},
        {"bias_penalty": "inf"},
        {"public_prior": PublicPrior(np.array([0.5, 0.5]))},
        {"public_prior": PublicPrior(np.array([0.5, 0.4, 0.05]))},
        {"public_prior": PublicPrior(np.array([0.5, 0.5, 5e-324]))},
        {"public_prior": PublicPrior(np.array([0.5, 0.25, 0.25])), "prior_epsilon": 0.1},
    ],
    ids=str,
)
def test_options_without_meaning_are_refused_before_a_label_is_read(options):
    with pytest.raises(InvalidInput):
        LabelJob(**{"labels": np.arange(3), "epsilon": 1.0, **options})


@pytest.mark.parametrize("values", [[], [math.nan], ["a"], [True]])
def test_values_that_are_no_labels_are_refused(values):
    with pytest.raises(InvalidInput):
        LabelJob(labels=np.arange(3), epsilon=1.0).run(values)


@pytest.mark.parametrize("n", [1, 0, -3, 2.5, "9", None, True])
def test_a_mesh_is_a_whole_number_of_at_least_two(n):
    with pytest.raises(InvalidInput, match="mesh"):
        EvenGrid(n)


@pytest.mark.parametrize("text", ["line", "interval:-9.5:1e1", "grid:30"])
@pytest.mark.parametrize("penalty", [0.0, 3.0, math.inf])
def test_the_mechanism_is_optimal_for_the_outputs_and_the_penalty_of_the_job(text, penalty):
    job = LabelJob(labels=np.arange(3), epsilon=1.0, outputs=parse_outputs(text), bias_penalty=penalty)
    release = job.run([0, 1, 2, 0] * 50, source=SeededEntropy(1))
    summary, mechanism = release.summary, release.mechanism
    spent = summary.split.labels
    allowed = feasible_output_set(job.labels, spent, 30) if text == "grid:30" else parse_outputs(text)
    problem = regression(job.labels, mechanism.problem.prior, spent, bias_penalty=penalty, outputs=allowed)
    assert mechanism.problem == problem
    assert summary.allowed == in_words(allowed)
    assert summary.gap <= GAP
    assert certify(mechanism).upper == pytest.approx(solve(problem).value, rel=GAP)
    assert summary.outputs == mechanism.n


def test_the_loss_that_is_told_leaves_out_the_penalty_and_the_bias_is_told_beside_it():
    """By the definitions: half of variance plus squared bias, and the largest bias."""
    for penalty in (0.0, 3.0, math.inf):
        job = LabelJob(labels=np.arange(3), epsilon=1.0, bias_penalty=penalty)
        release = job.run([0, 1, 2, 0] * 50, source=SeededEntropy(1))
        channel, prior = release.mechanism.randomizer, release.mechanism.problem.prior
        loss = float(prior @ (channel.variances + channel.biases**2)) / 2
        assert release.summary.noisy_label_loss == pytest.approx(loss, rel=1e-12)
        assert release.summary.bias == pytest.approx(np.abs(channel.biases).max(), rel=1e-6, abs=1e-12)
        assert (release.summary.bias > 0.1) == (penalty < math.inf)


def test_a_grid_is_feasible_for_what_is_left_for_the_labels():
    """Two labels: the ends of the grid are the only outputs that do, and they depend on epsilon_2."""
    job = LabelJob(labels=[0, 1], epsilon=1.0, outputs=EvenGrid(2), prior_epsilon=0.5)
    release = job.run([0, 1, 1], source=SeededEntropy(1))
    assert release.mechanism.problem.outputs == feasible_output_set([0, 1], 0.5, 2)
    assert release.summary.gap <= GAP


def test_outputs_too_narrow_for_the_labels_share_are_refused_before_anything_is_spent(monkeypatch):
    """Outputs from -1 to 3 are unbiased for 0 and 2 from epsilon log(3) on: the prior leaves less than that."""
    monkeypatch.setattr(optrand.release.job, "private_prior", None)
    job = LabelJob(labels=[0, 2], epsilon=math.log(3) + 1e-9, outputs=Interval(-1, 3))
    with pytest.raises(Infeasible, match="or further would do"):
        job.run([0, 2, 2])
    with pytest.raises(Infeasible, match="or further would do"):
        replace(job, prior_epsilon=0.1)
    with pytest.raises(Infeasible, match="or further would do"):
        replace(job, epsilon=1.0)
    assert replace(job, bias_penalty=5.0).outputs == Interval(-1, 3)


def test_a_thousand_labels_are_released_as_arcs():
    """Most of them have prior 0, and are rounded without bias to the three that count."""
    k = 1_001
    prior = np.zeros(k)
    prior[[0, 500, -1]] = 0.25, 0.5, 0.25
    job = LabelJob(labels=np.arange(k), epsilon=1.0, public_prior=PublicPrior(prior, absent=k - 3))
    release = job.run([0, 500, k - 1, 17], source=SeededEntropy(2))
    assert release.mechanism.arcs is not None
    assert release.summary.gap <= GAP
    assert release.summary.bias <= 1e-12 * k
    assert set(release.values) <= set(release.mechanism.outputs)


# The job on files


def test_a_table_is_released_with_its_mechanism_beside_it(table, tmp_path):
    output = tmp_path / "out.csv"
    summary = table_job().run(table, output)
    mechanism = load(mechanism_path(output))
    noisy = read_labels(output, "y")
    assert summary.rows == noisy.size == 200
    assert set(noisy) <= set(mechanism.outputs)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.csv",
        "out.csv",
        "out.csv.mechanism.json",
        "out.csv.release.json",
    ]
    with table.open(newline="") as before, output.open(newline="") as after:
        pairs = list(zip(csv.reader(before), csv.reader(after), strict=True))
    assert pairs[0][0] == pairs[0][1]
    assert all(old[0] == new[0] and old[2] == new[2] for old, new in pairs)
    assert any(old[1] != new[1] for old, new in pairs)


def test_a_table_comes_in_gzipped_and_goes_out_plain_and_the_other_way(table, tmp_path):
    packed, again = tmp_path / "packed.csv.gz", tmp_path / "again.csv"
    table_job().run(table, packed)
    assert gzip.decompress(packed.read_bytes()).startswith(b"id,y,note\n000,")
    table.write_bytes(gzip.compress(table.read_bytes()))
    table_job().run(table, again)
    assert again.read_bytes().startswith(b"id,y,note\n000,")


def test_a_parquet_table_is_released_as_parquet(tmp_path):
    pa.parquet.write_table(pa.table({"a": ["x", None], "y": pa.array([0, 2], pa.int8())}), tmp_path / "in.parquet")
    table_job().run(tmp_path / "in.parquet", tmp_path / "out.parquet")
    released = pa.parquet.read_table(tmp_path / "out.parquet")
    assert released.column("a").to_pylist() == ["x", None]
    assert released.schema.field("y").type == pa.float64()
    table_job().run(tmp_path / "in.parquet", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("a,y\nx,")


def test_what_exists_is_kept_unless_it_was_offered(table, tmp_path):
    output = tmp_path / "out.csv"
    output.write_text("precious")
    before = listing(tmp_path)
    with pytest.raises(InvalidInput, match="exists"):
        table_job().run(table, output)
    assert listing(tmp_path) == before
    table_job(overwrite=True).run(table, output)
    assert output.read_bytes().startswith(b"id,y,note")
    output.unlink()
    with pytest.raises(InvalidInput, match=r"mechanism\.json exists"):
        table_job().run(table, output)


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_input_is_never_the_output_whatever_its_name(table, tmp_path, overwrite):
    hard = tmp_path / "hard.csv"
    hard.hardlink_to(table)
    (tmp_path / "folder").mkdir()
    before = listing(tmp_path)
    for spelling in (table, hard, tmp_path / "folder" / ".." / "in.csv"):
        with pytest.raises(InvalidInput, match="is the input itself"):
            table_job(overwrite=overwrite).run(table, spelling)
    assert listing(tmp_path) == before


def test_links_folders_and_missing_folders_are_no_output(table, tmp_path):
    link, dangling, folder = tmp_path / "link.csv", tmp_path / "dangling.csv", tmp_path / "folder.csv"
    link.symlink_to(table)
    dangling.symlink_to(tmp_path / "elsewhere.csv")
    folder.mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    before = {path.name for path in tmp_path.iterdir()}
    for target, message in (
        (link, "symbolic link"),
        (dangling, "symbolic link"),
        (folder, "not a regular file"),
        (tmp_path / "pipe.csv", "not a regular file"),
        (tmp_path / "nowhere" / "out.csv", "not a folder"),
        (tmp_path / "out.xlsx", "of no known kind"),
    ):
        with pytest.raises(InvalidInput, match=message):
            table_job(overwrite=True).run(table, target)
    mechanism_path(tmp_path / "out.csv").symlink_to(table)
    with pytest.raises(InvalidInput, match="symbolic link"):
        table_job(overwrite=True).run(table, tmp_path / "out.csv")
    assert {path.name for path in tmp_path.iterdir()} == before | {"out.csv.mechanism.json"}


def test_a_target_is_checked_before_the_table_is_read(tmp_path):
    (tmp_path / "in.csv").write_text("no label here\n")
    (tmp_path / "out.csv").write_text("precious")
    with pytest.raises(InvalidInput, match="exists"):
        table_job().run(tmp_path / "in.csv", tmp_path / "out.csv")
    check_target(tmp_path / "new.csv", tmp_path / "in.csv")


def full_disk(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_disk_for_tables(temporary, target, **options):
    if not target.name.endswith(".prior.csv"):
        full_disk()
    publish(temporary, target, **options)


def no_answer(_):
    raise SolverFailed("no answer that could be read")


def full_after_a_while(sink, *_):
    sink.stream.write(b"000,")
    full_disk()


SOLVING = (optrand.release.job, "solve", no_answer)
WRITING = (CsvSink, "write", full_after_a_while)
SAVING = (Mechanism, "save", full_disk)
RENAMING = (optrand.base.files, "publish", full_disk_for_tables)


def broken_off(patch, job, table, output, failure):
    """What a job leaves that breaks off after the prior was drawn: the prior, and a note on the error that says so."""
    before = listing(table.parent)
    with patch.context() as broken:
        broken.setattr(*failure)
        with pytest.raises((OSError, SolverFailed)) as caught:
            job.run(table, output)
    (note,) = caught.value.__notes__
    left = listing(table.parent)
    kept = paid_prior_path(output)
    assert isinstance(note, SpentNote)
    assert "has spent 0.05 of the budget of 1.0" in note
    assert f"a retry with --paid-prior {kept}" in note
    assert {name: data for name, data in left.items() if name != kept.relative_to(table.parent)} == before
    return kept


@pytest.mark.parametrize("failure", [SOLVING, WRITING, SAVING, RENAMING], ids=lambda failure: failure[1])
def test_what_breaks_off_leaves_the_prior_alone_and_a_retry_does_not_pay_again(table, tmp_path, monkeypatch, failure):
    output = tmp_path / "out.csv"
    kept = broken_off(monkeypatch, table_job(), table, output, failure)
    with pytest.raises(InvalidInput, match=r"prior\.csv exists, a prior that an earlier run has paid for"):
        table_job(overwrite=True).run(table, output)
    paid = load_paid_prior(kept)
    monkeypatch.setattr(optrand.release.job, "private_prior", None)
    summary = table_job(paid_prior=paid).run(table, output)
    assert summary.prior == "estimated privately in an earlier run, epsilon 0.05 spent then"
    assert (summary.split.prior, summary.split.labels) == (0.05, 0.95)
    assert 0.99 < summary.realised_epsilon <= 1.0
    assert load(mechanism_path(output)).problem.prior.tolist() == smoothed_prior(paid.estimate, paid.rows).tolist()
    assert read_labels(output, "y").size == 200


def test_a_prior_that_was_paid_for_is_a_file_of_labels_and_counts(table, tmp_path, monkeypatch):
    kept = broken_off(monkeypatch, table_job(), table, tmp_path / "out.csv", SOLVING)
    paid = load_paid_prior(kept)
    assert kept.read_text().startswith("label,noisy count (prior epsilon 0.05 of 1.0 for 200 rows)\n0.0,")
    assert (paid.labels.tolist(), paid.epsilon, paid.rows, paid.split) == ([0, 1, 2], 1.0, 200, split_at(1.0, 0.05))
    assert read_prior(kept, np.arange(3.0)).probabilities.tolist() == paid.estimate.probabilities.tolist()


def test_a_failure_before_the_prior_is_drawn_has_spent_nothing_and_says_nothing_of_it(table, tmp_path, monkeypatch):
    monkeypatch.setattr(optrand.release.job, "private_prior", None)
    table.write_text(table.read_text() + "200,7,n\n")
    before = listing(tmp_path)
    with pytest.raises(InvalidInput, match="nothing was written and nothing spent") as caught:
        table_job().run(table, tmp_path / "out.csv")
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(InvalidInput, match="too close for floats to tell apart"):
        table_job(labels=[0, 1e-15, 1])
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidInput, match="you may not write to"):
        table_job().run(table, tmp_path / "out.csv")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("options", [{"public_prior": PublicPrior(np.array([0.5, 0.25, 0.25]))}, {"paid": True}])
def test_a_run_that_paid_for_no_prior_says_nothing_of_it(table, tmp_path, monkeypatch, options):
    if options.pop("paid", False):
        kept = broken_off(monkeypatch, table_job(), table, tmp_path / "first.csv", SOLVING)
        options["paid_prior"] = load_paid_prior(kept)
    before = listing(tmp_path)
    monkeypatch.setattr(*SAVING)
    with pytest.raises(OSError, match="No space left") as caught:
        table_job(**options).run(table, tmp_path / "out.csv")
    assert not hasattr(caught.value, "__notes__")
    assert listing(tmp_path) == before


@pytest.mark.parametrize("name", ["fsync", "link"])
def test_a_disk_that_cannot_even_keep_the_prior_leaves_nothing_behind(table, tmp_path, monkeypatch, name):
    before = listing(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(os, name, full_disk)
        with pytest.raises(OSError, match="No space left") as caught:
            table_job().run(table, tmp_path / "out.csv")
    assert "has spent 0.05 of the budget of 1.0; it was not kept" in caught.value.__notes__[0]
    assert listing(tmp_path) == before
    table_job().run(table, tmp_path / "out.csv")


def test_on_arrays_the_prior_is_handed_over_as_soon_as_it_is_paid_for(monkeypatch):
    job, values = LabelJob(labels=np.arange(3), epsilon=1.0), [0, 1, 2, 0] * 50
    kept = []
    with monkeypatch.context() as patch:
        patch.setattr(*SOLVING)
        with pytest.raises(SolverFailed) as caught:
            job.run(values)
        assert "has spent 0.05 of the budget of 1.0; it was not kept" in caught.value.__notes__[0]
        with pytest.raises(SolverFailed):
            job.run(values, keep=kept.append)
    (paid,) = kept
    release = replace(job, paid_prior=paid).run(values)
    assert release.mechanism.problem.prior.tolist() == smoothed_prior(paid.estimate, paid.rows).tolist()
    with pytest.raises(InvalidInput, match="paid for with 200 labels and there are 4"):
        replace(job, paid_prior=paid).run([0, 1, 2, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": np.arange(4)}, "other declared labels"),
        ({"labels": np.arange(3) / 2}, "other declared labels"),
        ({"epsilon": 2.0}, "give the same budget"),
        ({"prior_epsilon": 0.1}, "give the same budget"),
        ({"public_prior": PublicPrior(np.array([0.5, 0.25, 0.25]))}, "not both"),
        ({"outputs": Interval(0, 2)}, "or further would do"),
    ],
)
def test_a_prior_is_used_only_with_the_labels_and_the_budget_that_paid_for_it(options, message):
    paid = PaidPrior(np.arange(3), EstimatedPrior((3, 0, 4), 0.05), 1.0, 7)
    given = {"labels": np.arange(3), "epsilon": 1.0, "paid_prior": paid}
    assert LabelJob(**given, prior_epsilon=0.05).paid_prior is paid
    with pytest.raises(InvalidInput, match=message):
        LabelJob(**{**given, **options})


def test_a_paid_prior_of_zeros_is_uniform_when_it_is_read_again(tmp_path):
    PaidPrior(np.arange(2), EstimatedPrior((0, 0), 0.05), 1.0, 7).save(tmp_path / "p.csv")
    paid = load_paid_prior(tmp_path / "p.csv")
    assert paid.estimate.probabilities.tolist() == [0.5, 0.5]
    release = LabelJob(labels=[0, 1], epsilon=1.0, paid_prior=paid).run([0] * 7)
    assert release.summary.prior.endswith("spent then; the noise left no count above 0, so it is uniform")


@given(
    labels=st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=9, unique=True).filter(
        lambda found: np.diff(np.sort(found)).min() > 1e-100
    ),
    budget=st.tuples(st.floats(1e-3, 100.0), st.floats(1e-3, 0.9)),
    data=st.data(),
)
def test_a_paid_prior_is_read_as_it_was_written(tmp_path_factory, labels, budget, data):
    whole, share = budget
    counts = data.draw(st.lists(st.integers(0, 10**30), min_size=len(labels), max_size=len(labels)))
    paid = PaidPrior(np.array(labels) + 0.0, EstimatedPrior(tuple(counts), whole * share), whole, 7)
    path = tmp_path_factory.mktemp("paid") / "p.csv"
    paid.save(path)
    again = load_paid_prior(path)
    assert again.labels.tolist() == paid.labels.tolist()
    assert (again.estimate, again.epsilon, again.rows) == (paid.estimate, paid.epsilon, paid.rows)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "label,count\n0,3\n1,4\n",
        "label,noisy count (prior epsilon 0.05 of 1.0 for 7 rows)\n0,3\n1,-4\n",
        "label,noisy count (prior epsilon 0.05 of 1.0 for 7 rows)\n0,3\n0,4\n",
        "label,noisy count (prior epsilon 0.05 of 1.0 for 7 rows)\n1,3\n0,4\n",
        "label,noisy count (prior epsilon 0.05 of 1.0 for 7 rows)\n0,3\nx,4\n",
        "label,noisy count (prior epsilon 0.05 of 1.0 for 7 rows)\n",
        "label,noisy count (prior epsilon 0.0 of 1.0 for 7 rows)\n0,3\n1,4\n",
        "label,noisy count (prior epsilon 1.0 of 1.0 for 7 rows)\n0,3\n1,4\n",
        "label,noisy count (prior epsilon nan of 1.0 for 7 rows)\n0,3\n1,4\n",
        None,
    ],
)
def test_what_no_job_has_left_is_no_paid_prior(tmp_path, content):
    if content is not None:
        (tmp_path / "p.csv").write_text(content)
    with pytest.raises(InvalidInput, match="no prior that was paid for"):
        load_paid_prior(tmp_path / "p.csv")


def test_a_failure_leaves_what_was_there_before(table, tmp_path, monkeypatch):
    output = tmp_path / "out.csv"
    table_job().run(table, output)
    broken_off(monkeypatch, table_job(overwrite=True), table, output, WRITING)


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    target = tmp_path / "out.csv"

    def write():
        with new_file(target) as stream:
            stream.write(b"ours")
            target.write_bytes(b"theirs")

    with pytest.raises(InvalidInput, match="exists"):
        write()
    assert listing(tmp_path) == {target.relative_to(tmp_path): b"theirs"}


HALF_WAY = """
import sys, time
import numpy as np
from pathlib import Path
from optrand.release.job import LabelJob
from optrand.release.streams.csv_files import CsvSink
from optrand.release.table_job import TableJob

def stuck(sink, part, batch):
    sink.stream.write(b"000,")
    sink.stream.flush()
    print("half way", flush=True)
    time.sleep(60)

CsvSink.write = stuck
job = TableJob(job=LabelJob(labels=np.arange(3.0), epsilon=1.0), column="y")
job.run(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_process_leaves_the_prior_and_nothing_under_the_final_names(table, tmp_path):
    output = tmp_path / "out.csv"
    with subprocess.Popen([sys.executable, "-c", HALF_WAY, table, output], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half way\n"
        process.send_signal(signal.SIGKILL)
    left = {path.name for path in tmp_path.iterdir()} - {"in.csv", "out.csv.prior.csv"}
    assert len(left) == 1
    assert left.pop().startswith(".out.csv.")
    table_job(paid_prior=load_paid_prior(paid_prior_path(output))).run(table, output)
    assert read_labels(output, "y").size == 200


def test_the_bundled_counts_are_a_public_prior():
    prior = read_prior(weeks_worked_counts_path(), parse_labels("0:52"))
    assert prior.probabilities[0] == 95_983 / 199_523


def test_a_source_that_others_can_repeat_writes_no_table(table, tmp_path):
    with pytest.raises(InvalidInput, match="SeededEntropy draws words that others can draw again"):
        table_job().run(table, tmp_path / "out.csv", source=SeededEntropy(4))
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_what_is_not_yet_released_is_readable_by_its_owner_alone(tmp_path):
    with new_file(tmp_path / "out.csv") as stream:
        stream.write(b"y")
        (unfinished,) = tmp_path.iterdir()
        assert unfinished.stat().st_mode & 0o777 == 0o600
    mask = os.umask(0o077)
    os.umask(mask)
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_request_to_terminate_leaves_the_prior_and_says_so(table, tmp_path):
    script = (
        "import os, signal, sys, time\n"
        "from optrand.release.streams import csv_files\n"
        "csv_files.CsvSink.write = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(1)\n"
        "from optrand.cli import main\n"
        f"sys.argv = ['optrand', 'randomize', {str(table)!r}, {str(tmp_path / 'out.csv')!r},"
        " '--label', 'y', '--labels', '0:4', '--epsilon', '1', '--no-ledger']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("error: stopped by SIGTERM: nothing was released; the prior was drawn before this")
    assert "has spent 0.05 of the budget of 1.0;" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv.prior.csv"]
