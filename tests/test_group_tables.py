"""Tables released by groups of public columns: a prior and a mechanism for each pool, one epsilon."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from optrand import certify, load
from optrand.accounting import Ledger
from optrand.cli import app
from optrand.errors import InputChanged, InvalidFile, InvalidInput, NotCertified
from optrand.release.baseline_job import BaselineJob
from optrand.release.column_groups import ColumnGroups
from optrand.release.job import LabelJob
from optrand.release.named import named_randomizer
from optrand.release.paths import mechanisms_path, record_path
from optrand.release.record import load_release
from optrand.release.table import read_labels
from optrand.release.table_job import TableJob
from optrand.release.table_options import TableOptions

SIZES = {"CA": 5_000, "NY": 4_000, "VT": 30, "WY": 20}


def write_table(path, *, renamed: str | None = None) -> None:
    rng = np.random.default_rng(2)
    chances = {"CA": [0.5, 0.48, 0.01, 0.01], "NY": [0.01, 0.01, 0.48, 0.5]}
    lines = []
    for state, size in SIZES.items():
        for y in rng.choice(4, size, p=chances.get(state)):
            lines.append(f"{len(lines)},{state if len(lines) != 7 or renamed is None else renamed},{y}")
    path.write_text("\n".join(["id,state,y", *lines]) + "\n")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "state").mkdir(mode=0o700)
    write_table(tmp_path / "in.csv")
    return tmp_path


def job(columns=("state",), overwrite=False, **options) -> TableJob:
    return TableJob(
        job=LabelJob(labels=range(4), epsilon=1.0, **options),
        column="y",
        overwrite=overwrite,
        options=TableOptions(id_column="id", grouping=ColumnGroups(columns)),
    )


LEDGER = {"dataset": "people", "ledger": "state/ledger.sqlite"}


def charge():
    with Ledger.open("state/ledger.sqlite") as ledger:
        (found,) = ledger.entries()
    return found


def test_a_table_is_released_by_groups_for_one_epsilon(here):
    summary = job().run("in.csv", "out.csv", **LEDGER)
    record = load_release(record_path("out.csv"))
    assert record.epsilon == summary.split.total <= 1
    assert charge().total.epsilon <= 1
    assert set(charge().priors) == set(charge().mechanisms) == {"0", "1", "2"}
    assert record.circumstances.groups == ("state",)
    assert record.circumstances.ledger
    assert [json.loads(one.group) for one in record.randomizers] == [["CA"], ["NY"], ["VT"], ["WY"]]
    # The two small groups share a pool, and so a file.
    assert len({one.name for one in record.randomizers}) == 3
    assert record.randomizers[2].name == record.randomizers[3].name
    assert len(list(mechanisms_path("out.csv").iterdir())) == 3
    noisy, rows = read_labels("out.csv", "y"), iter((here / "in.csv").read_text().splitlines()[1:])
    assert noisy.size == sum(SIZES.values())
    states = np.array([row.split(",")[1] for row in rows])
    for one in record.randomizers:
        mechanism = record.read(one)
        proof = certify(mechanism).require(gap=1e-6)
        assert proof.epsilon <= record.parts.labels
        assert set(noisy[states == json.loads(one.group)[0]]) <= set(mechanism.outputs)
    assert summary.realised_epsilon <= 1
    assert record.relative_loss == summary.relative_loss < 0.995
    assert summary.gap < 1e-6
    assert len(record.estimates.counts) == 4


def test_what_groups_hold_can_be_estimated_without_bias():
    job().run("in.csv", "out.csv", **LEDGER)
    record = load_release(record_path("out.csv"))
    before, after = (read_labels(name, "y") for name in ("in.csv", "out.csv"))
    assert abs(before.mean() - after.mean()) < 6 * record.estimates.mean


def test_interrupted_groups_keep_their_priors(here):
    with pytest.raises(NotCertified):
        job(max_gap=0.0).run("in.csv", "out.csv", **LEDGER)
    kept = charge()
    assert not (here / "out.csv").exists()
    write_table(here / "in.csv", renamed="NY")
    with pytest.raises(InputChanged):
        job().run("in.csv", "out.csv", **LEDGER)
    write_table(here / "in.csv")
    job().run("in.csv", "out.csv", **LEDGER)
    assert charge().release == kept.release
    assert charge().priors == kept.priors


def test_a_second_release_replaces_the_first_as_a_whole(here):
    job().run("in.csv", "out.csv")
    first = load_release(record_path("out.csv"))
    with pytest.raises(InvalidInput, match="exists: choose another name"):
        job().run("in.csv", "out.csv")
    job(overwrite=True).run("in.csv", "out.csv")
    second = load_release(record_path("out.csv"))
    assert second.circumstances.release != first.circumstances.release
    for one in second.randomizers:
        second.read(one)
    with pytest.raises(InvalidInput, match="would speak for labels"):
        TableJob(job=LabelJob(labels=range(4), epsilon=1.0), column="y", overwrite=True).run("in.csv", "out.csv")
    assert sorted(path.name for path in here.iterdir() if path.name.startswith(".")) == []


def test_a_mechanism_that_was_exchanged_is_found():
    job().run("in.csv", "out.csv")
    folder = mechanisms_path("out.csv")
    (folder / "0.json").write_bytes((folder / "1.json").read_bytes())
    load(folder / "0.json")
    with pytest.raises(InvalidFile, match="not the randomizer of this release"):
        load_release(record_path("out.csv"))


def test_every_mechanism_of_a_record_is_verified():
    job().run("in.csv", "out.csv")
    found = CliRunner().invoke(app, ["verify", "out.csv.release.json", "--table", "out.csv", "--gap", "1e-6"])
    assert found.exit_code == 0, found.output
    assert found.output.count("verified in integers") == 3
    assert "4 by state" in found.output
    mechanisms_path("out.csv").joinpath("2.json").unlink()
    assert CliRunner().invoke(app, ["verify", "out.csv.release.json"]).exit_code == 2


def test_groups_need_public_columns_and_a_prior():
    with pytest.raises(InvalidInput, match="group by public columns"):
        job(("y",)).run("in.csv", "out.csv")
    response = BaselineJob(labels=np.arange(4.0), randomizer=named_randomizer("rr", np.arange(4.0), epsilon=1.0))
    grouped = TableJob(job=response, column="y", options=job().options)
    with pytest.raises(InvalidInput, match="a randomizer each for a prior"):
        grouped.run("in.csv", "out.csv")
    for columns in ((), ("a", "a")):
        with pytest.raises(InvalidInput, match="none of them twice"):
            ColumnGroups(columns)


def test_groups_do_not_depend_on_the_order_of_rows_or_the_type_of_their_column():
    rng = np.random.default_rng(1)
    a, b = rng.integers(-2, 3, 200), rng.choice(["", "x", None], 200)
    plain = pa.record_batch({"a": pa.array(a), "b": pa.array(b.tolist(), pa.string())})
    groups = ColumnGroups(("a", "b")).among([plain])
    order = rng.permutation(200)
    assert ColumnGroups(("a", "b")).among([plain.take(pa.array(order))]) == groups
    coded = pa.record_batch({"a": plain["a"].cast(pa.int8()), "b": plain["b"].dictionary_encode()})
    assert (groups.codes(plain) == groups.codes(coded)).all()
    assert (groups.codes(plain)[order] == groups.codes(plain.take(pa.array(order)))).all()
    found = [json.loads(groups.names[code]) for code in groups.codes(plain)]
    assert found == [[str(one), other] for one, other in zip(a, b.tolist(), strict=True)]
    assert len(set(groups.names)) == len(groups) == 15
    with pytest.raises(InputChanged):
        ColumnGroups(("a", "b")).among([plain.slice(0, 1)]).codes(plain)
    with pytest.raises(InvalidInput, match="expected integers, booleans or text"):
        ColumnGroups(("a",)).among([pa.record_batch({"a": [0.5]})])
