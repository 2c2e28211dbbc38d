"""How steep debiased losses are, and how far their risk is from the risk ([G21], Lemmas 19 and 20)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from random import Random

from optrand.theory.claim import Budget, Claim
from optrand.theory.comparison import Comparison, at_most, worst
from optrand.theory.g21.debiased_losses import TopK, TopKLoss, responses, top_k_losses
from optrand.theory.instances import listed, prior

__all__ = ["CLAIMS"]


@dataclass(frozen=True)
class _Slopes:
    """A loss that is steep where it can be, with either sign under each label."""

    response: TopK
    steepness: Fraction

    @cached_property
    def steepest(self) -> Fraction:
        """Of the debiased loss, under any label, whatever signs the slopes have."""
        labels = range(len(self.response.prior))
        signs = product((self.steepness, -self.steepness), repeat=len(self.response.prior))
        return max(abs(self.response.debiased(slopes, label)) for slopes in signs for label in labels)

    def __str__(self) -> str:
        return f"{self.response}, L = {self.steepness}"


def _steep(budget: Budget) -> Iterator[_Slopes]:
    random = Random(19)  # noqa: S311
    for number, response in enumerate(responses(random, budget.pick(quick=60, full=3_000))):
        yield _Slopes(response, (Fraction(1), Fraction(1, 7), Fraction(12))[number % 3])


def debiased_losses_are_no_steeper(slopes: _Slopes) -> Comparison:
    """The debiased loss is Lipschitz in the prediction, with ``L (1 + k p) / (1 - k p)``.

    Attained under a label that is not kept. Of a released label it is ``L (1 + (k - 2) p) / (1 - k p)``.
    """
    p, k = slopes.response.other, slopes.response.k
    return at_most(slopes.steepest, slopes.steepness * (1 + k * p) / (1 - k * p))


def debiased_losses_are_as_steep_as_their_scale(slopes: _Slopes) -> Comparison:
    """The debiased loss is Lipschitz in the prediction, with ``L / (1 - k p)``."""
    return at_most(slopes.steepest, slopes.steepness / (1 - slopes.response.k * slopes.response.other))


@dataclass(frozen=True)
class _Population:
    """Labels of a few features, each with its own likeliest ones, and a function's losses there."""

    weights: tuple[tuple[Fraction, ...], ...]
    responses: tuple[TopK, ...]
    losses: tuple[tuple[Fraction, ...], ...]

    @cached_property
    def error(self) -> Fraction:
        """How far the risk of the debiased loss on released labels is from the risk of the loss on true ones."""
        return abs(
            sum(
                (
                    chance * (losses[y] - response.expected(losses, y))
                    for chances, response, losses in zip(self.weights, self.responses, self.losses, strict=True)
                    for y, chance in enumerate(chances)
                ),
                Fraction(0),
            )
        )

    @cached_property
    def outside(self) -> Fraction:
        """How likely a label is to be none of the kept ones."""
        return sum(
            (
                chance
                for chances, response in zip(self.weights, self.responses, strict=True)
                for y, chance in enumerate(chances)
                if y not in response.kept
            ),
            Fraction(0),
        )

    def __str__(self) -> str:
        features = zip(self.responses, self.weights, self.losses, strict=True)
        return "; ".join(
            f"{response}, true chances {listed(chances)}, losses {listed(losses)}"
            for response, chances, losses in features
        )


def _populations(budget: Budget) -> Iterator[_Population]:
    random = Random(20)  # noqa: S311
    for response in responses(random, 0):
        labels = len(response.prior)
        losses = tuple(Fraction(y not in response.kept) for y in range(labels))
        yield _Population((response.prior,), (response,), (losses,))
    for _ in range(budget.pick(quick=200, full=5_000)):
        labels, features = random.randint(2, 5), random.randint(1, 4)
        joint = prior(random, labels * features)
        k, ratio = random.randint(1, labels), 1 + Fraction(random.randint(1, 999), 10 ** random.randint(0, 4))
        yield _Population(
            tuple(joint[i * labels : (i + 1) * labels] for i in range(features)),
            tuple(TopK(prior(random, labels), k, ratio) for _ in range(features)),
            tuple(tuple(Fraction(random.randint(0, 6), 6) for _ in range(labels)) for _ in range(features)),
        )


def only_other_labels_cost(population: _Population) -> Comparison:
    """The risk of the debiased loss on released labels is off by at most the chance of a label that is not kept.

    Of losses between 0 and 1, with labels and predictions as they come.
    """
    return at_most(population.error, population.outside)


def other_labels_cost_less(population: _Population) -> Comparison:
    """The same with ``1 - p`` times that chance."""
    return at_most(population.error, (1 - population.responses[0].other) * population.outside)


def the_inner_term_without_debiasing(loss: TopKLoss) -> Comparison:
    """A loss and the mean loss of what is released of the label are equal for kept labels, within 1 for others.

    So the proof has it to the letter: the tilde of the debiased loss is missing there.
    """
    response, losses = loss.response, loss.losses
    plain = [
        sum((chance * losses[v] for v, chance in enumerate(response.rows[y])), Fraction(0)) for y in range(len(losses))
    ]
    return _inner(loss, plain)


def the_inner_term_debiased(loss: TopKLoss) -> Comparison:
    """A loss and the mean debiased loss of what is released are equal for kept labels, within 1 for others."""
    return _inner(loss, [loss.response.expected(loss.losses, y) for y in range(len(loss.losses))])


def _inner(loss: TopKLoss, means: Sequence[Fraction]) -> Comparison:
    kept = loss.response.kept
    return worst(
        *(
            at_most(abs(own - mean), 0 if y in kept else 1)
            for y, (own, mean) in enumerate(zip(loss.losses, means, strict=True))
        )
    )


CLAIMS = (
    Claim(
        paper="G21",
        number="Lemma 19",
        hypothesis="a loss that is L-Lipschitz in the prediction under every label",
        instances=_steep,
        printed=debiased_losses_are_no_steeper,
        false=debiased_losses_are_as_steep_as_their_scale,
    ),
    Claim(
        paper="G21",
        number="Lemma 20",
        hypothesis="losses in [0, 1]; any function, any distribution",
        instances=_populations,
        printed=only_other_labels_cost,
        false=other_labels_cost_less,
    ),
    Claim(
        paper="G21",
        number="Lemma 20",
        part="inner term",
        hypothesis="losses in [0, 1]",
        instances=top_k_losses,
        printed=the_inner_term_debiased,
        false=the_inner_term_without_debiasing,
    ),
)
