"""Many problems on a cluster of Dask's, here a process: answers, errors, cancelling, time limits."""

import operator
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import optrand
from optrand.errors import OutOfTime
from optrand.solvers import ReducedDual

PATIENCE = 60.0


@dataclass(frozen=True)
class Slow:
    """A solver that leaves a trace in a folder and takes its time."""

    folder: str

    def __call__(self, problem):
        (Path(self.folder) / uuid.uuid4().hex).touch()
        time.sleep(0.3)
        return ReducedDual()(problem)


@pytest.fixture(scope="module")
def client():
    import cloudpickle

    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed: optrand[dask]")
    # Workers cannot import this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def problems(count=8):
    rng = np.random.default_rng(3)
    return [optrand.unbiased_regression(np.arange(7), rng.dirichlet(np.ones(7)), 1.0 + 0.1 * i) for i in range(count)]


def idle(client):
    """Wait until the cluster has nothing left to do."""
    end = time.monotonic() + PATIENCE
    while any(client.processing().values()):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_many_problems_have_the_answers_of_one_machine(client):
    given = problems()
    found = optrand.solve_many(given, executor=client.get_executor())
    assert [one.value for one in found] == pytest.approx([optrand.solve(one).value for one in given], rel=1e-9)
    assert all(optrand.certify(one).gap < 1e-9 for one in found)
    assert [one.problem for one in found] == given


def test_an_exception_of_a_task_is_raised(client):
    with pytest.raises(AttributeError, match="no_such_attribute"):
        optrand.solve_many(problems(), operator.attrgetter("no_such_attribute"), executor=client.get_executor())
    idle(client)


def test_a_time_limit_cancels_what_has_not_begun(client, tmp_path):
    given = problems(40)
    found = optrand.solve_many(
        given, Slow(str(tmp_path)), executor=client.get_executor(), on_error="return", time_limit=2.0
    )
    idle(client)
    solved = [isinstance(one, optrand.Mechanism) for one in found]
    assert 0 < sum(solved) < len(given)
    assert all(isinstance(one, OutOfTime) for one, right in zip(found, solved, strict=True) if not right)
    assert len(list(tmp_path.iterdir())) < len(given)
