"""The pictures that compare: every point is a number that was computed another way, and every omission is stated."""

import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import StepPatch

import optrand
from optrand import Mechanism
from optrand.baselines import Moments
from optrand.closed_forms import rr_top_k, rr_with_prior
from optrand.errors import Infeasible, NotCertified
from optrand.plotting._comparisons import frontier_figure, moments_figure, times_figure
from optrand.plotting._releases import rr_with_prior_figure, shares_figure
from optrand.plotting._style import LIMITS
from optrand.sampling._entropy import SeededEntropy
from optrand.solvers import design
from optrand.studies._many import Sweep
from tests.pictures import legend_texts, line

LABELS, PRIOR = np.arange(4.0), np.array([0.4, 0.3, 0.2, 0.1])
PENALTIES = [0.0, 0.1, 1.0, 10.0, math.inf]


def names(axes: Axes) -> list[str]:
    return [str(line.get_label()) for line in axes.lines if not str(line.get_label()).startswith("_")]


@pytest.fixture(scope="module")
def swept() -> Sweep:
    problem = optrand.unbiased_regression(LABELS, PRIOR, 1.0)
    return optrand.studies.sweep(problem, epsilons=[1.0, 3.0], bias_penalties=PENALTIES)


def test_the_frontier_runs_from_the_least_loss_to_no_bias(swept: Sweep) -> None:
    figure = frontier_figure(swept)
    (left,) = figure.axes
    for epsilon in (1.0, 3.0):
        rows = [row for row in swept if row.epsilon == epsilon]
        found = line(left, f"ε = {epsilon:g}")
        np.testing.assert_allclose(found[:, 0] ** 2, [row.squared_bias for row in rows])
        np.testing.assert_allclose(found[:, 1] ** 2, [row.variance for row in rows])
        # Less bias, more variance: so it is a frontier.
        assert (np.diff(found[:, 0]) < 0).all()
        assert (np.diff(found[:, 1]) > 0).all()
    # The ends under other names.
    bins = optrand.rr_on_bins(LABELS, PRIOR, 1.0)
    assert line(left, "ε = 1")[0, 1] == pytest.approx(math.sqrt(PRIOR @ bins.table.variances), rel=1e-6)
    assert (left.get_xlabel(), left.get_ylabel()) == (
        "root mean squared bias (label units)",
        "standard deviation (label units)",
    )
    # The marks have their penalties beside them, where they fit, and no two overlap.
    figure.draw_without_rendering()
    assert [text.get_text() for text in left.texts[:5]] == ["∞", "10", "1", "0.1", "0"]
    assert [text.xy for text in left.texts[:5]] == [tuple(point) for point in line(left, "ε = 1").tolist()[::-1]]
    boxes = [text.get_window_extent() for text in left.texts]
    assert not [1 for i, box in enumerate(boxes) if box.count_overlaps(boxes[i + 1 :])]
    assert legend_texts(figure) == ["ε = 1", "ε = 3"]
    told = "Least variance at the bias of each mark (numbers: bias penalty): 10 certified randomizers"
    assert " ".join(figure.get_suptitle().split()) == told


def test_rows_without_a_proof_are_left_out_and_counted(swept: Sweep) -> None:
    broken = replace(swept[2], status="failed", variance=math.nan, squared_bias=math.nan)
    figure = frontier_figure([*swept[:2], broken, *swept[3:5]])
    assert figure.get_suptitle().endswith("left out without a proof")
    assert "4 certified randomizers, 1" in " ".join(figure.get_suptitle().split())
    assert line(figure.axes[0], "ε = 1").shape == (4, 2)


def test_without_any_bias_the_deviation_is_drawn_against_epsilon(swept: Sweep) -> None:
    rows = [row for row in swept if math.isinf(row.bias_penalty)]
    figure = frontier_figure(rows)
    (axes,) = figure.axes
    assert line(axes, "without bias").tolist() == [[row.epsilon, math.sqrt(row.variance)] for row in rows]
    assert axes.get_xlabel() == "ε (nats)"
    assert figure.get_suptitle() == "Least standard deviation without bias: 2 certified randomizers"


def optimal(epsilon: float) -> Mechanism:
    return optrand.solve(optrand.unbiased_regression(LABELS, PRIOR, epsilon))


def laplace(epsilon: float) -> Moments:
    """Noise of scale ``3 / epsilon`` has twice the square of that as its variance."""
    return Moments(np.zeros(4), np.full(4, 2 * (3 / epsilon) ** 2))


def test_loss_deviation_and_bias_are_the_moments_of_each_randomizer() -> None:
    randomizers = {
        "optimal": optimal,
        "candidate": lambda epsilon: design(optimal(epsilon).problem).randomizer,
        "bins": lambda epsilon: optrand.rr_on_bins(LABELS, PRIOR, epsilon),
        "Laplace": laplace,
    }
    epsilons = [2.0, 0.5, 1.0]
    figure = moments_figure(randomizers, PRIOR, epsilons=epsilons)
    loss, deviation, bias = figure.axes
    assert names(loss) == names(deviation) == names(bias) == legend_texts(figure) == list(randomizers)
    for name, function in randomizers.items():
        expected = [function(epsilon) for epsilon in sorted(epsilons)]
        assert line(loss, name)[:, 0].tolist() == [0.5, 1.0, 2.0]
        if name != "Laplace":
            values = [
                optimal(2.0).problem.value(answer) if name == "candidate" else answer.value for answer in expected
            ]
            np.testing.assert_allclose(line(loss, name)[:, 1], values, rtol=1e-8)
    np.testing.assert_allclose(line(deviation, "Laplace")[:, 1], [3 * 2**0.5 / e for e in (0.5, 1.0, 2.0)])
    for name in randomizers:
        halves = (line(deviation, name)[:, 1] ** 2 + line(bias, name)[:, 1] ** 2) / 2
        np.testing.assert_allclose(line(loss, name)[:, 1], halves, rtol=1e-9)
    # Nothing unbiased is below the certified optimum, and rounding does not look like a bias.
    assert (line(loss, "Laplace")[:, 1] > line(loss, "optimal")[:, 1]).all()
    assert line(bias, "optimal")[:, 1].max() == 0
    assert line(bias, "bins")[:, 1].min() > 0.01


def test_there_is_no_point_where_there_is_no_randomizer_or_no_moment() -> None:
    def sometimes(epsilon: float) -> Moments:
        if epsilon < 1:
            raise Infeasible("no such randomizer")
        return Moments(np.zeros(4), np.full(4, math.inf if epsilon < 2 else 0.0 if epsilon < 3 else 1.0))

    figure = moments_figure({"Laplace": laplace, "sometimes": sometimes}, PRIOR, epsilons=[0.5, 1, 2, 4])
    # Without bias there is no panel of it.
    assert figure.get_suptitle().endswith("all without bias")
    loss, deviation = (line(axes, "sometimes")[:, 1] for axes in figure.axes)
    np.testing.assert_allclose(loss, [math.nan, math.nan, math.nan, 0.5])
    np.testing.assert_allclose(deviation, [math.nan, math.nan, math.nan, 1.0])


def test_what_does_not_answer_its_problem_is_not_drawn() -> None:
    biased = Mechanism(optimal(1.0).problem, optrand.rr_on_bins(LABELS, PRIOR, 1.0).table)
    with pytest.raises(NotCertified, match="biased by up to"):
        moments_figure({"biased": lambda _: biased}, PRIOR, epsilons=[1.0])


@pytest.mark.parametrize("prior", [PRIOR[::-1], [0.5, 0.5, 0.0, 0.0]])
def test_each_gain_is_the_value_of_rr_top_k_and_the_mark_is_at_the_certified_optimum(prior) -> None:
    epsilons = [0.1, 1.0, 3.0]
    gain = rr_with_prior_figure(prior, epsilons=epsilons).axes[0]
    curves = [each for each in gain.lines if each.get_label() == "_w"]
    for curve, epsilon in zip(curves, epsilons, strict=True):
        mechanisms = [rr_top_k(prior, k, epsilon) for k in range(1, 5)]
        np.testing.assert_allclose(curve.get_ydata(), [mechanism.value for mechanism in mechanisms], rtol=1e-12)
        best = rr_with_prior(prior, epsilon)
        ((x, y),) = line(gain, f"ε = {epsilon:g}: k = {best.n}")
        assert x == best.n
        proof = best.certificate.require(gap=1e-12)
        assert y == pytest.approx(proof.lower, rel=1e-12)
        assert y == pytest.approx(max(curve.get_ydata()), rel=1e-12)


def test_the_best_k_grows_with_epsilon_and_falls_with_the_power_of_the_prior():
    figure = rr_with_prior_figure(PRIOR, epsilons=[0.5, 2.0])
    gain, by_epsilon = figure.axes
    for name, power in (("this prior", 1.0), ("its square", 2.0), ("its square root", 0.5)):
        found = line(by_epsilon, name)
        assert (np.diff(found[:, 1]) >= 0).all()
        assert found[0, 1] < found[-1, 1] == 4
        raised = PRIOR**power / (PRIOR**power).sum()
        for epsilon, count in found[::40]:
            assert count == rr_with_prior(raised, epsilon).n
    for epsilon in (0.5, 2.0):
        ((x, y),) = line(by_epsilon, f"_ε = {epsilon:g}")
        assert (x, y) == (epsilon, rr_with_prior(PRIOR, epsilon).n)
    assert figure.get_suptitle() == "RRWithPrior on 4 labels"
    # Numbers of labels are integers, and each has a tick.
    figure.draw_without_rendering()
    assert {1, 2, 3, 4} <= set(gain.get_xticks().tolist()) & set(by_epsilon.get_yticks().tolist())
    assert gain.get_xscale() == by_epsilon.get_yscale() == "linear"
    assert (gain.get_title(loc="left"), by_epsilon.get_title(loc="left")) == (
        "probability of the label, $w_k$",
        "best number of labels kept",
    )


def test_ten_thousand_labels_are_drawn_without_a_table() -> None:
    prior = 1 / np.arange(1.0, 10_001)
    figure = rr_with_prior_figure(prior / prior.sum(), epsilons=[8.0])
    gain = figure.axes[0]
    assert len(gain.lines[0].get_xdata()) == 10_000
    assert gain.lines[0].get_marker() == ""
    # With p_k in proportion to 1 / k the last k that pays is the last with k (H_(k-1) - 1) + 1 < exp(8) - 1.
    k = np.arange(2, 10_001)
    pays = k * (np.cumsum(1 / np.arange(1, 10_000)) - 1) + 1 < math.expm1(8)
    assert k[pays][-1] == 512
    assert names(gain) == ["ε = 8: k = 512"]


ROWS = [
    {"method": "program", "mesh": 200, "seconds": 4.0},
    {"method": "program", "mesh": 100, "seconds": 1.0},
    {"method": "program", "mesh": 800, "seconds": None},
    {"method": "program", "mesh": 400, "seconds": None},
    {"method": "other", "mesh": 400, "seconds": None},
    {"method": "line", "mesh": None, "seconds": 0.05},
]


def test_times_are_drawn_by_size_and_what_was_given_up_has_an_arrow() -> None:
    figure = times_figure(ROWS, by="mesh", series="method")
    (axes,) = figure.axes
    assert line(axes, "program").tolist() == [[100, 1], [200, 4]]
    assert set(line(axes, "line")[:, 1]) == {0.05}
    arrows = [line.get_xydata()[0].tolist() for line in axes.lines if line.get_marker() == r"$\uparrow$"]
    assert [x for x, _ in arrows] == [400, 400]
    # Above every time, and not one over the other.
    assert 4 < arrows[0][1] < arrows[1][1]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("mesh size", "time to solve (seconds)")
    assert legend_texts(figure) == ["program", "other", "line", "aborted: took longer"]
    # Every size has a tick, that at which a solve was given up too.
    assert axes.get_xticks().tolist() == [100, 200, 400, 800]


def test_an_arrow_stands_at_the_limit_that_its_row_names() -> None:
    rows = [{**row, "limit": 60.0} if row["seconds"] is None and row["mesh"] == 400 else row for row in ROWS]
    (axes,) = times_figure(rows, by="mesh", series="method").axes
    heights = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == r"$\uparrow$"]
    assert heights == [60.0, 60.0 * LIMITS.arrow_rise]
    # At two sizes nothing is hidden: both stand at their limit.
    rows[4] = {**rows[4], "mesh": 800}
    (axes,) = times_figure(rows, by="mesh", series="method").axes
    assert [line.get_ydata()[0] for line in axes.lines if line.get_marker() == r"$\uparrow$"] == [60.0, 60.0]


def test_shares_stand_in_the_band_of_their_errors_beside_their_projection_and_the_truth() -> None:
    mechanism = optrand.debiased_rr(LABELS, 1.0)
    found = optrand.estimate.histogram(mechanism.sample(np.zeros(1000), source=SeededEntropy(4)), mechanism)
    assert found.shares.min() < 0
    figure = shares_figure(found, truth=[1, 0, 0, 0])
    (axes,) = figure.axes
    band, middle = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
    np.testing.assert_allclose(middle.get_data().values, found.shares)
    np.testing.assert_allclose(band.get_data().values - found.shares, 2 * found.noise_errors)
    np.testing.assert_allclose(found.shares - band.get_data().baseline, 2 * found.noise_errors)
    bottom, top = axes.get_ylim()
    assert bottom < (found.shares - 2 * found.noise_errors).min()
    assert top > (found.shares + 2 * found.noise_errors).max()
    np.testing.assert_allclose(line(axes, "nearest without negative shares")[:, 1], found.projected)
    np.testing.assert_allclose(line(axes, "true shares"), np.stack((LABELS, [1, 0, 0, 0]), axis=1))
    assert legend_texts(figure) == ["± 2 noise errors", "unbiased", "nearest without negative shares", "true shares"]
    assert figure.get_suptitle().startswith("Shares of 4 labels from 1,000 released values: noise error at most")
    assert "true shares" not in legend_texts(shares_figure(found))
