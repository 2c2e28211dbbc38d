"""Labels as vectors of random bits: privacy, cost, and the excess risk of what learns from them ([Z25], 3, 4, C.2).

Laws are written out vector by vector, from the exact coins of the mechanism; features are finitely many points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from optrand.base.arithmetic import exp_bracket
from optrand.baselines import UnaryBits
from optrand.sampling.entropy import SeededEntropy, Words
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import Instance, prior, seeded, shares
from optrand.theory.sums import largest_ratio, pushed, times, total

__all__ = ["Bits", "Point", "Task", "Training", "Vector", "bit_mean", "gain", "law"]

Vector = tuple[int, ...]
Row = tuple[Fraction, ...]

TWICE = Variant("The same with each bit exp(epsilon) times likelier right than wrong.", share=2)
FORGOTTEN = Variant("The same with `r / (r + 1)` for `(r - 1) / (r + 1)`: the noise of other bits forgotten.", lost=0)
NOISELESS = Variant("The same with the probability of the class in place of the mean of its bit.", noisy=False)
NO_TIES = Variant("The same where the gap is less than ``2 Delta_epsilon``.", ties=False)
BIASED = Variant("The same with ``2 Delta``, which is not debiased.", debiased=False)


def law(randomizer: UnaryBits, y: int) -> dict[Vector, Fraction]:
    """Probability of every vector under label `y`, from the coins of the randomizer."""
    right, wrong = 1 - randomizer.flip, randomizer.flip
    vectors = product((0, 1), repeat=randomizer.k)
    return {z: times(right if bit == (j == y) else wrong for j, bit in enumerate(z)) for z in vectors}


def gain(odds: Fraction) -> Fraction:
    """Growth of the mean of a bit with the probability of its class: ``(r - 1) / (r + 1)``."""
    return (odds - 1) / (odds + 1)


def bit_mean(eta: Fraction, odds: Fraction) -> Fraction:
    """Mean of a bit whose class has probability `eta` ([Z25], eq. 24)."""
    return 1 / (1 + odds) + gain(odds) * eta


class Bits(Instance):
    """A distribution `eta` of the label, and the budget of its vector."""

    eta: tuple[Fraction, ...]
    epsilon: float

    @cached_property
    def mixture(self) -> dict[Vector, Fraction]:
        """Law of the vector, whatever the label."""
        laws = (law(UnaryBits(len(self.eta), self.epsilon), y) for y in range(len(self.eta)))
        return pushed(((z, p * q) for p, each in zip(self.eta, laws, strict=True) for z, q in each.items()), tuple)


def _bits(budget: Budget) -> Iterator[Bits]:
    for k, epsilon in product((2, 3), (1.0, 0.1, 2.0, 4.0, 1e-6, 10.0, 40.0)):
        for weights in ([1] * k, [1] + [0] * (k - 1), list(range(k, 0, -1))):
            yield Bits(shares(weights), epsilon)
    random = seeded(24)
    for _ in range(budget.pick(quick=60, full=500)):
        yield Bits(prior(random, random.randint(2, budget.pick(quick=5, full=7))), random.randint(1, 90) / 20)


@claim(
    "Z25 Theorem 1",
    on=_bits,
    given="at least two classes, any epsilon above 0",
    sides=("largest ratio of probabilities", "exp(epsilon)"),
    false=TWICE,
)
def two_bits(bits: Bits, share: int = 1) -> Comparison:
    """If each bit is exp(epsilon / 2) times likelier right than wrong, no vector has a ratio above exp(epsilon)."""
    randomizer = UnaryBits(len(bits.eta), share * bits.epsilon)
    return at_most(largest_ratio([law(randomizer, y) for y in range(randomizer.k)]), exp_bracket(bits.epsilon)[0])


@claim(
    "Z25 Theorem 1: draws",
    kind="ours",
    on=_bits,
    given="20,000 seeded vectors of the first label",
    sides=("distance of a frequency from its probability", "five standard errors"),
    false=TWICE,
)
def drawn_as_printed(bits: Bits, share: int = 1) -> Comparison:
    """The package draws vectors as often as their probabilities say, up to five standard errors."""
    k, n = len(bits.eta), 20_000
    drawn = UnaryBits(k, bits.epsilon).sample(np.zeros(n, dtype=np.intp), source=SeededEntropy(12))
    counts = np.bincount(drawn @ (1 << np.arange(k)[::-1]), minlength=1 << k).tolist()
    pairs = zip(counts, law(UnaryBits(k, share * bits.epsilon), 0).values(), strict=True)
    return worst(*(at_most(abs(count / n - float(p)), 5 * math.sqrt(p * (1 - p) / n)) for count, p in pairs))


class Training(Instance, other="first label instead"):
    """Labels, another first one, and the learner that sees a vector of each."""

    labels: Vector
    other: int
    k: int
    epsilon: float
    learner: Callable[[tuple[Vector, ...]], object]

    def outcomes(self, labels: Vector, rounds: int) -> dict[object, Fraction]:
        """Law of what is learned, each label randomized so many times."""
        randomizer = UnaryBits(self.k, self.epsilon)
        vectors = product(*(law(randomizer, y).items() for y in labels * rounds))
        joint = ((tuple(z for z, _ in each), times(p for _, p in each)) for each in vectors)
        return pushed(joint, self.learner)


def everything(vectors: tuple[Vector, ...]) -> object:
    """All vectors."""
    return vectors


def votes(vectors: tuple[Vector, ...]) -> object:
    """The class of most bits."""
    sums = [sum(bits) for bits in zip(*vectors, strict=True)]
    return sums.index(max(sums))


def _trainings(budget: Budget) -> Iterator[Training]:
    for k, size in budget.pick(quick=((2, 1), (2, 3), (3, 2)), full=((2, 1), (2, 3), (3, 2), (2, 5), (3, 3), (4, 2))):
        for epsilon, learner in product((1.0, 0.1, 4.0), (everything, votes)):
            for labels in dict.fromkeys(((0,) * size, tuple(i % k for i in range(size)))):
                yield Training(labels, k - 1, k, epsilon, learner)


@claim(
    "Z25 Section 3.1: local to central",
    on=_trainings,
    given="small datasets, vectors of Theorem 1; algorithms that return all vectors, or the class of most bits",
    sides=("largest ratio of probabilities", "exp(epsilon)"),
    false=Variant("The same where a label is randomized anew in each of two rounds.", rounds=2),
)
def local_is_central(training: Training, rounds: int = 1) -> Comparison:
    """What any algorithm learns from the randomized labels is epsilon-DP for a change of one label of the dataset."""
    laws = [training.outcomes((y, *training.labels[1:]), rounds) for y in (training.labels[0], training.other)]
    return at_most(largest_ratio(laws), exp_bracket(training.epsilon)[0])


class Shipment(Instance, size="N", k="K"):
    """Labels to randomize."""

    k: int
    size: int
    epsilon: float


def _shipments(budget: Budget) -> Iterator[Shipment]:
    for n in budget.pick(quick=(1_000, 20_000), full=(1_000, 20_000, 300_000)):
        yield from (Shipment(k, n, e) for k in (2, 8, 10, 100, 1_000 if n < 10**5 else 9) for e in (1.0, 4.0))


class _Counted(SeededEntropy):
    count = 0

    def words(self, count: int) -> Words:
        self.count += count
        return super().words(count)


@claim(
    "Z25 Section 4.3: cost",
    on=_shipments,
    given="time by the random octets that are drawn, a vector of K bits sent in whole octets",
    sides=("octets sent, or random octets", "bound (octets)"),
    false=Variant("The same with log2(K) in place of K: the bits of a scalar.", bits=lambda k: (k - 1).bit_length()),
)
def cost(shipment: Shipment, bits: Callable[[int], int] = int) -> Comparison:
    """To randomize N labels takes a time of the order of N K: five random octets for each octet that is sent."""
    source, randomizer = _Counted(1), UnaryBits(shipment.k, shipment.epsilon)
    sent = randomizer.sample_packed(np.zeros(shipment.size, dtype=np.intp), source=source)
    octets = -(-bits(shipment.k) // 8) * shipment.size
    return worst(at_most(sent.size, octets), at_most(8 * source.count, 5 * octets))


@claim(
    "Z25 Equation 24",
    on=_bits,
    given="any distribution of the label, any epsilon above 0",
    sides=("probability that a bit is 1, or r", "probability as claimed, or exp(epsilon / 2)"),
    false=FORGOTTEN,
)
def bits_tell_the_class(bits: Bits, lost: int = 1) -> Comparison:
    """Bit ``j`` is 1 with probability ``1 / (1 + r) + eta_j (r - 1) / (r + 1)``, where ``r = exp(epsilon / 2)``."""
    r = UnaryBits(len(bits.eta), bits.epsilon).odds
    means = [total(p for z, p in bits.mixture.items() if z[j]) for j in range(len(bits.eta))]
    alike = (equal(m, 1 / (1 + r) + (r - lost) / (r + 1) * p) for m, p in zip(means, bits.eta, strict=True))
    return worst(equal(float(r), math.exp(bits.epsilon / 2), tolerance=1e-12), *alike)


@claim(
    "Z25 Equation 44",
    on=_bits,
    given="any law of the label, any epsilon; least: as said after it",
    sides=("mean loss of an output, or the least one", "loss by the formula, or that of another output"),
    false=NOISELESS,
)
def cross_entropy_is_least_at_the_mean(bits: Bits, *, noisy: bool = True) -> Comparison:
    """Output `u` for a bit of mean `m` has the expected loss ``-m ln u - (1 - m) ln(1 - u)``, which is least at `m`."""
    mean = bit_mean(bits.eta[0], UnaryBits(len(bits.eta), bits.epsilon).odds) if noisy else bits.eta[0]

    def entropy(u: Fraction) -> float:
        return -sum(float(share) * math.log(said) for share, said in ((mean, u), (1 - mean, 1 - u)) if share)

    outputs = [*(Fraction(n, 12) for n in range(1, 12)), *(u for u in (mean, mean * Fraction(99, 100)) if 0 < u < 1)]
    losses = [math.fsum(-float(p) * math.log(u if z[0] else 1 - u) for z, p in bits.mixture.items()) for u in outputs]
    as_printed = (equal(loss, entropy(u), tolerance=1e-12) for u, loss in zip(outputs, losses, strict=True))
    return worst(*as_printed, *(at_most(entropy(mean), loss, tolerance=1e-12) for loss in losses))


class Point(NamedTuple):
    """A model at a point: its chance, how far the named and the second class are from the best, ``Delta_epsilon``."""

    mass: Fraction
    lack: Fraction
    gap: Fraction
    error: Fraction


class Task(Instance, masses="points", etas="eta", odds="exp(epsilon/2)", models="(probability, g) of models"):
    """Points, class probabilities there, and models of the means of bits: a row of outputs ``g`` a point."""

    masses: Row
    etas: tuple[Row, ...]
    odds: Fraction
    models: tuple[tuple[Fraction, tuple[Row, ...]], ...]

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """Every model at every point; it names the first class with the largest output."""
        return tuple(
            Point(
                mass=chance * mass,
                lack=max(eta) - eta[row.index(max(row))],
                gap=max(eta) - sorted(eta)[-2],
                error=max(abs(g - bit_mean(p, self.odds)) for g, p in zip(row, eta, strict=True)) / gain(self.odds),
            )
            for chance, rows in self.models
            for mass, eta, row in zip(self.masses, self.etas, rows, strict=True)
        )

    @cached_property
    def excess(self) -> Fraction:
        """The probability of a wrong class, less the least that any classifier has: all of them are tried."""

        def risk(classifier: tuple[int, ...]) -> Fraction:
            cases = zip(self.masses, self.etas, classifier, strict=True)
            return total(mass * p for mass, eta, named in cases for y, p in enumerate(eta) if y != named)

        least = min(map(risk, product(range(len(self.etas[0])), repeat=len(self.masses))))
        return total(chance * risk(tuple(row.index(max(row)) for row in rows)) for chance, rows in self.models) - least


def _tasks(budget: Budget) -> Iterator[Task]:
    def misled(eta: Row, odds: Fraction, error: Fraction) -> Row:
        return tuple(bit_mean(p + (error if p < max(eta) else -error), odds) for p in eta)  # Best too low.

    def approximated(eta: Row, odds: Fraction) -> Row:
        size = Fraction(random.choice((0, 1, 2, 4, 8)), 40)
        if random.random() < 0.3:
            return misled(eta, odds, size)
        return tuple(bit_mean(p + size * random.randint(-2, 2) / 2, odds) for p in eta)

    for weights in ((2, 3), (1, 1), (1, 2, 2), (1, 3, 2), (0, 1)):
        for odds in map(Fraction, ("2", "3", "11/10", "1000001/1000000", "10000000000")):
            for error in map(Fraction, ("1/10", "3/20", "0", "1/20", "1/2")):
                eta = shares(weights)
                yield Task((Fraction(1),), (eta,), odds, ((Fraction(1), (misled(eta, odds, error),)),))
    random = seeded(2)
    for _ in range(budget.pick(quick=400, full=5_000)):
        k, size = random.randint(2, 4), random.randint(1, 3)
        # Small weights, so that ties are common.
        drawn = [[random.randint(0, 4) for _ in range(k)] for _ in range(size)]
        etas = tuple(shares(each if any(each) else [1] * k) for each in drawn)
        odds = 1 + Fraction(random.randint(1, 40), 10)
        chances = shares([random.randint(1, 4) for _ in range(random.randint(1, 3))])
        models = tuple((chance, tuple(approximated(eta, odds) for eta in etas)) for chance in chances)
        yield Task(shares([random.randint(1, 5) for _ in range(size)]), etas, odds, models)


@claim(
    "Z25 Proposition 1",
    on=_tasks,
    given="a classifier learned from a sample independent of what it is tested on",
    sides=("excess risk", "mean lack of the named classes"),
)
def excess_is_what_classes_lack(task: Task) -> Comparison:
    """The excess risk is the mean, over points and models, of how far the named class is from the likeliest one."""
    return equal(task.excess, total(point.mass * point.lack for point in task.points))


@excess_is_what_classes_lack.false
def _(task: Task) -> Comparison:
    """The same of the class that is named most often at each point, rather than the mean over models."""
    lacking = Fraction(0)
    for x, (mass, eta) in enumerate(zip(task.masses, task.etas, strict=True)):
        named = [total(c for c, rows in task.models if rows[x].index(max(rows[x])) == y) for y in range(len(eta))]
        lacking += mass * (max(eta) - eta[named.index(max(named))])
    return equal(task.excess, lacking)


@claim(
    "Z25 Theorem 2",
    on=_tasks,
    given="any model of the means of bits, any epsilon above 0",
    sides=("excess risk", "bound"),
    false=NO_TIES,
)
def excess_needs_a_small_gap(task: Task, *, ties: bool = True) -> Comparison:
    """The excess risk is at most the mean of ``2 Delta_epsilon`` where the two likeliest classes are no further apart.

    ``Delta_epsilon`` is the largest error of a bit's mean times ``(r + 1) / (r - 1)``, where ``r = exp(epsilon / 2)``.
    """
    near = (p for p in task.points if p.gap < 2 * p.error or (ties and p.gap == 2 * p.error))
    return at_most(task.excess, total(p.mass * 2 * p.error for p in near))


@claim(
    "Z25 Section 1: gap",
    on=_tasks,
    given="estimates of class probabilities from the outputs, debiased; the error is the largest over the classes",
    sides=("largest lack where the error is below the gap", "zero"),
    corrected=Variant("The named class is best wherever twice the error is below the gap.", factor=2),
    false=Variant("The named class is best wherever twice the error is at most the gap.", factor=2, ties=True),
)
def errors_below_the_gap_do_no_harm(task: Task, *, factor: int = 1, ties: bool = False) -> Comparison:
    """The named class is best wherever the error is below the gap of the two likeliest classes."""
    far = (p for p in task.points if factor * p.error < p.gap or (ties and factor * p.error == p.gap))
    return at_most(max((p.lack for p in far), default=0), 0)


@claim(
    "Z25 Equation 27",
    on=_tasks,
    given="as in Theorem 2, whose proof it is",
    sides=("lack of the named class", "bound at the point"),
    false=BIASED,
)
def mistakes_need_a_small_gap(task: Task, *, debiased: bool = True) -> Comparison:
    """At each point the named class lacks at most ``2 Delta_epsilon``, and nothing where the gap is larger than that.

    It lacks how far its probability is from the largest; the gap is that of the two largest.
    """
    limits = ((p, 2 * p.error * (1 if debiased else gain(task.odds))) for p in task.points)
    return worst(*(at_most(p.lack, limit if p.gap <= limit else 0) for p, limit in limits))
