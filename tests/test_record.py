"""Record of a release: the total, nothing that was not paid for, and no field that can be changed unnoticed."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import optrand
from optrand.base import strict_json
from optrand.errors import InvalidFile, InvalidInput
from optrand.release import job as job_module
from optrand.release.baseline_job import BaselineJob
from optrand.release.circumstances import Circumstances, TableFile
from optrand.release.job import LabelJob
from optrand.release.named import named_randomizer
from optrand.release.paths import mechanism_path, record_path
from optrand.release.record import FORMAT, ReleaseRecord, load_release, sha256_of
from optrand.release.table import read_labels
from optrand.release.table_job import TableJob
from optrand.sampling.entropy import SeededEntropy
from optrand.sampling.priors import BudgetSplit, EstimatedPrior

ROWS = 200


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "private.csv"
    path.write_text("id,y\n" + "".join(f"{i},{i % 3}\n" for i in range(ROWS)))
    return path


@pytest.fixture
def released(table, tmp_path):
    output = tmp_path / "out.csv"
    TableJob(job=LabelJob(labels=np.arange(3), epsilon=1.0), column="y").run(table, output)
    return output


def test_the_record_states_the_total_and_ties_the_files(released):
    record = load_release(record_path(released))
    assert record.epsilon == 1.0
    assert record.parts == BudgetSplit(0.05, 0.95)
    assert Fraction(record.parts.prior) + Fraction(record.parts.labels) <= 1
    assert (record.rows, record.circumstances.column, record.table.name) == (ROWS, "y", "out.csv")
    assert record.mechanism == optrand.load(mechanism_path(released))
    assert len(record.noisy_counts) == 3
    record.verify_table(released)
    found = optrand.estimate.histogram(read_labels(released, "y"), record)
    assert found.shares.sum() == pytest.approx(1.0)
    assert optrand.estimate.mean(read_labels(released, "y"), record).size == ROWS


def test_stated_errors_are_those_of_the_mechanism(released):
    record = load_release(record_path(released))
    mechanism = record.mechanism
    prior, variances = mechanism.problem.prior, mechanism.moments(mechanism.labels).variances
    assert record.estimates.label == pytest.approx(np.sqrt(prior @ variances))
    assert record.estimates.mean == pytest.approx(np.sqrt(prior @ variances / ROWS))
    # Of the shares' errors those of the labels that the table holds evenly are near the prior's.
    weights = optrand.estimate.loss_weights(mechanism)
    squares = mechanism.randomizer.matrix @ weights**2
    assert record.estimates.counts == pytest.approx(np.sqrt(ROWS * (prior @ squares - prior)))


def test_a_record_is_written_as_it_is_read(released, tmp_path):
    record = load_release(record_path(released))
    copy = tmp_path / "copy.json"
    record.save(copy)
    assert copy.read_bytes() == record_path(released).read_bytes()
    assert load_release(copy) == record
    assert sum(line.startswith(b'"epsilon":1.0') for line in copy.read_bytes().splitlines()) == 1
    with pytest.raises(InvalidInput, match="exists"):
        record.save(copy)


def test_neighbouring_tables_with_one_noisy_histogram_have_records_equal_but_for_the_table(monkeypatch):
    """Everything but the digest of the noisy table is a function of what was paid for, and of public numbers."""
    fixed = EstimatedPrior((90, 70, 40), 0.05)
    monkeypatch.setattr(job_module, "private_prior", lambda *_, **__: fixed)
    around = Circumstances(release="0" * 32, column="y")
    records = []
    for first in (0.0, 2.0):
        labels = np.concatenate([[first], np.arange(ROWS - 1) % 3])
        release = LabelJob(labels=np.arange(3), epsilon=1.0).run(labels, source=SeededEntropy(9))
        digest = f"{int(abs(release.values.sum() * 1e6)):064x}"
        records.append(ReleaseRecord.of(release, around, table=TableFile("out.csv", digest, ROWS)))
    one, other = records
    assert one.table != other.table
    assert replace(one, table=None) == replace(other, table=None)
    assert replace(one, table=None).to_bytes() == replace(other, table=None).to_bytes()


def resealed(path, change):
    document = json.loads(path.read_bytes())
    change(document)
    document.pop("digest")
    content = {name: value for name, value in document.items() if name not in ("format", "schema")}
    path.write_bytes(strict_json.canonical(strict_json.sealed(content, kind=FORMAT)))


FORGERIES = {
    "a smaller total": (lambda d: d.update(epsilon=0.95), "not the sum of its parts"),
    "a free prior": (lambda d: d.update(parts={"prior": 0.0, "labels": 0.95}, epsilon=0.95), "noisy histogram"),
    "no epsilon": (lambda d: d.update(parts={"prior": 0.0, "labels": 0.0}, epsilon=0.0), "epsilon|part"),
    "delta above 1": (lambda d: d.update(delta=1.5), "delta"),
    "no rows": (lambda d: d.update(rows="0"), "0 row"),
    "rows of another table": (lambda d: d.update(rows="7"), "200 rows and 7"),
    "fewer counts": (lambda d: d["noisy_counts"].pop(), "2 noisy counts for 3 labels"),
    "negative error": (lambda d: d["estimates"].update(label=-1.0), "negative"),
    "errors without a histogram": (lambda d: d["estimates"].update(histogram=False), "no histogram"),
    "labels that fall": (lambda d: d.update(labels=[2.0, 1.0, 0.0]), "strictly increase"),
    "a path that leads out": (lambda d: d["randomizers"][0].update(name="../m.json"), "leads out"),
    "an absolute path": (lambda d: d["table"].update(name="/etc/passwd"), "leads out"),
    "no digest of the table": (lambda d: d["table"].update(sha256="0"), "64 hexadecimal"),
    "another mechanism": (lambda d: d["randomizers"][0].update(sha256="0" * 64), "SHA-256"),
    "an unknown policy": (lambda d: d["circumstances"].update(nulls="guess"), "nulls"),
    "no uuid": (lambda d: d["circumstances"].update(release="x"), "UUID"),
    "a word for a flag": (lambda d: d.update(private="no"), "neither true nor false"),
    "a field more": (lambda d: d.update(counts=[1]), "unknown"),
    "a list for a table": (lambda d: d.update(table=[]), "expected an object"),
    "a class that is a number": (lambda d: d["circumstances"].update(classes=[0.5, 1.5, 2.5]), "neither a string"),
    "few classes": (lambda d: d["circumstances"].update(classes=["a"]), "1 classes for 3 labels"),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_record_with_a_right_digest_is_refused(released, forgery):
    change, words = FORGERIES[forgery]
    path = record_path(released)
    resealed(path, lambda _: None)
    load_release(path)
    resealed(path, change)
    with pytest.raises(InvalidFile, match=words):
        load_release(path)


def test_one_byte_changed_is_noticed(released):
    path = record_path(released)
    content = path.read_bytes()
    for place in range(0, len(content), 37):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(bytes(damaged))
        try:
            same = json.loads(bytes(damaged)) == json.loads(content)
        except ValueError:
            same = False
        if not same:
            with pytest.raises(InvalidFile):
                load_release(path)


def test_a_mechanism_with_a_smaller_epsilon_does_not_pass_for_the_released_one(released):
    """Even with its SHA-256 in the record: epsilon of the labels is that of the mechanism."""
    other = optrand.tabulate(optrand.debiased_rr([0, 1, 2], 0.5))
    other.save(mechanism_path(released), overwrite=True)
    with pytest.raises(InvalidFile, match="SHA-256 is another one"):
        load_release(record_path(released))
    digest = sha256_of(mechanism_path(released))
    resealed(record_path(released), lambda d: d["randomizers"][0].update(sha256=digest))
    with pytest.raises(InvalidFile, match="another epsilon"):
        _ = load_release(record_path(released)).mechanism


def test_another_table_is_refused_and_a_lost_mechanism_is_named(released):
    record = load_release(record_path(released))
    released.write_bytes(released.read_bytes() + b"200,1\n")
    with pytest.raises(InvalidFile, match="is not the table of this release"):
        record.verify_table(released)
    mechanism_path(released).unlink()
    again = load_release(record_path(released))
    with pytest.raises(InvalidInput, match="keep it beside the record"):
        _ = again.mechanism


def test_noise_has_a_record_without_a_table_to_estimate_with(table, tmp_path):
    labels = np.arange(3.0)
    job = BaselineJob(labels=labels, randomizer=named_randomizer("discrete-laplace", labels, epsilon=1.0))
    TableJob(job=job, column="y").run(table, tmp_path / "noise.csv")
    record = load_release(record_path(tmp_path / "noise.csv"))
    assert (record.epsilon, record.parts, record.noisy_counts) == (1.0, BudgetSplit(0.0, 1.0), None)
    assert (record.estimates.histogram, record.estimates.counts) == (False, None)
    assert record.estimates.mean == pytest.approx(record.estimates.label / np.sqrt(ROWS))
    assert record.drawn == job.randomizer
    with pytest.raises(InvalidInput, match="additive noise"):
        _ = record.mechanism
