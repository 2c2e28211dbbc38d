"""Labels as vectors of random bits: privacy, cost, and what the bits say on average ([Z25], Sections 3.1 and 4, C.2).

Every law is written out, vector by vector, from the exact coins of :class:`~optrand.baselines.UnaryBits`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product

import numpy as np

from optrand.base.arithmetic import exp_bracket
from optrand.baselines import UnaryBits
from optrand.sampling.entropy import SeededEntropy, Words
from optrand.theory.claim import Budget, Variant, claim
from optrand.theory.comparison import Comparison, at_most, equal, worst
from optrand.theory.instances import Instance, prior, seeded, shares
from optrand.theory.sums import largest_ratio, pushed, times, total

__all__ = ["EPSILONS", "Bits", "Training", "Vector", "bit_mean", "gain", "law"]

EPSILONS = (1.0, 0.1, 2.0, 4.0, 1e-6, 10.0, 40.0)

ROUNDING = 1e-12
"""What floats are forgiven."""

Vector = tuple[int, ...]


def law(randomizer: UnaryBits, y: int) -> dict[Vector, Fraction]:
    """Probability of every vector under label `y`, from the coins of the randomizer.

    Examples
    --------
    >>> chances = law(UnaryBits(2, 2.0), 0)
    >>> chances[1, 0] / chances[0, 1] == UnaryBits(2, 2.0).ratio, sum(chances.values()) == 1
    (True, True)
    """
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
    def randomizer(self) -> UnaryBits:
        """The mechanism."""
        return UnaryBits(len(self.eta), self.epsilon)

    @cached_property
    def mixture(self) -> dict[Vector, Fraction]:
        """Law of the vector, whatever the label."""
        laws = (law(self.randomizer, y) for y in range(len(self.eta)))
        return pushed(((z, p * q) for p, each in zip(self.eta, laws, strict=True) for z, q in each.items()), tuple)

    def loss(self, output: Fraction) -> float:
        """Expected cross entropy of an output for the bit of the first class, summed over the vectors."""
        return math.fsum(-float(p) * math.log(output if z[0] else 1 - output) for z, p in self.mixture.items())


def _bits(budget: Budget) -> Iterator[Bits]:
    for k, epsilon in product((2, 3), EPSILONS):
        for weights in ([1] * k, [1] + [0] * (k - 1), list(range(k, 0, -1))):
            yield Bits(shares(weights), epsilon)
    random = seeded(24)
    for _ in range(budget.pick(quick=60, full=500)):
        yield Bits(prior(random, random.randint(2, budget.pick(quick=5, full=7))), random.randint(1, 90) / 20)


@claim(
    "Z25",
    "Theorem 1",
    on=_bits,
    given="at least two classes, any epsilon above 0",
    false=Variant("The same with each bit exp(epsilon) times likelier right than wrong.", share=2),
)
def two_bits(bits: Bits, share: int = 1) -> Comparison:
    """If each bit is exp(epsilon / 2) times likelier right than wrong, no vector has a ratio above exp(epsilon).

    That is, the probabilities of one vector under two labels.
    """
    randomizer = UnaryBits(len(bits.eta), share * bits.epsilon)
    laws = [law(randomizer, y) for y in range(randomizer.k)]
    return at_most(largest_ratio(laws), exp_bracket(bits.epsilon)[0])


@claim(
    "Z25",
    "Theorem 1: draws",
    kind="ours",
    on=_bits,
    given="20,000 vectors of the first label, drawn by the package with the words of a seed",
    false=Variant("The same of the vectors of twice the budget, whose bits are exp(epsilon) times likelier.", share=2),
)
def drawn_as_printed(bits: Bits, share: int = 1) -> Comparison:
    """Vectors come as often as their probabilities say, up to five standard errors."""
    k, n = len(bits.eta), 20_000
    drawn = bits.randomizer.sample(np.zeros(n, dtype=np.intp), source=SeededEntropy(12))
    counts = np.bincount(drawn @ (1 << np.arange(k)[::-1]), minlength=1 << k)
    chances = law(UnaryBits(k, share * bits.epsilon), 0).values()
    allowed = ((count, p, 5 * math.sqrt(p * (1 - p) / n)) for count, p in zip(counts.tolist(), chances, strict=True))
    return worst(*(at_most(abs(count / n - float(p)), error) for count, p, error in allowed))


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
    "Z25",
    "Section 3.1: local to central",
    on=_trainings,
    given="small datasets, vectors of Theorem 1; algorithms that return all vectors, or the class of most bits",
    false=Variant("The same where a label is randomized anew in each of two rounds.", rounds=2),
)
def local_is_central(training: Training, rounds: int = 1) -> Comparison:
    """What any algorithm learns from the randomized labels is epsilon-DP for a change of one label of the dataset."""
    changed = (training.other, *training.labels[1:])
    laws = [training.outcomes(labels, rounds) for labels in (training.labels, changed)]
    return at_most(largest_ratio(laws), exp_bracket(training.epsilon)[0])


class _Counted(SeededEntropy):
    count = 0

    def words(self, count: int) -> Words:
        self.count += count
        return super().words(count)


class Shipment(Instance, size="N", k="K"):
    """Labels to randomize."""

    k: int
    size: int
    epsilon: float


def _shipments(budget: Budget) -> Iterator[Shipment]:
    sizes = budget.pick(quick=(1_000, 20_000), full=(1_000, 20_000, 300_000))
    yield from (
        Shipment(k, n, e) for n in sizes for k in (2, 8, 10, 100, 1_000 if n < 10**5 else 9) for e in (1.0, 4.0)
    )


@claim(
    "Z25",
    "Section 4.3: cost",
    on=_shipments,
    given="time by the random octets that are drawn, a vector of K bits sent in whole octets",
    false=Variant("The same with log2(K) in place of K: the bits of a scalar.", bits=lambda k: (k - 1).bit_length()),
)
def cost(shipment: Shipment, bits: Callable[[int], int] = int) -> Comparison:
    """To randomize N labels takes a time of the order of N K: five random octets for each octet that is sent."""
    source, randomizer = _Counted(1), UnaryBits(shipment.k, shipment.epsilon)
    sent = randomizer.sample_packed(np.zeros(shipment.size, dtype=np.intp), source=source)
    octets = -(-bits(shipment.k) // 8) * shipment.size
    return worst(at_most(sent.size, octets), at_most(8 * source.count, 5 * octets))


@claim(
    "Z25",
    "Equation 24",
    on=_bits,
    given="any distribution of the label, any epsilon above 0",
    false=Variant("The same with `r / (r + 1)` for `(r - 1) / (r + 1)`: the noise of other bits forgotten.", lost=0),
)
def bits_tell_the_class(bits: Bits, lost: int = 1) -> Comparison:
    """Bit ``j`` is 1 with probability ``1 / (1 + r) + eta_j (r - 1) / (r + 1)``, where ``r = exp(epsilon / 2)``."""
    r = bits.randomizer.odds
    means = [total(p for z, p in bits.mixture.items() if z[j]) for j in range(len(bits.eta))]
    return worst(*(equal(m, 1 / (1 + r) + (r - lost) / (r + 1) * p) for m, p in zip(means, bits.eta, strict=True)))


@claim("Z25", "Equation 44", on=_bits, given="any distribution of the label, any epsilon; least: as said just after it")
def cross_entropy_is_least_at_the_mean(bits: Bits) -> Comparison:
    """Output `u` for a bit of mean `m` has the expected loss ``-m ln u - (1 - m) ln(1 - u)``, which is least at `m`.

    The loss is the binary cross entropy, of the bit of the first class, summed over the vectors.
    """
    return _least_at(bits, bit_mean(bits.eta[0], bits.randomizer.odds))


@cross_entropy_is_least_at_the_mean.false
def _(bits: Bits) -> Comparison:
    """The same with the probability of the class in place of the mean of its bit."""
    return _least_at(bits, bits.eta[0])


def _least_at(bits: Bits, mean: Fraction) -> Comparison:
    def entropy(u: Fraction) -> float:
        return -sum(float(share) * math.log(said) for share, said in ((mean, u), (1 - mean, 1 - u)) if share)

    outputs = [*(Fraction(n, 12) for n in range(1, 12)), *(u for u in (mean, mean * Fraction(99, 100)) if 0 < u < 1)]
    losses = [(bits.loss(u), entropy(u)) for u in outputs]
    return worst(
        *(equal(loss, formula, tolerance=ROUNDING) for loss, formula in losses),
        *(at_most(entropy(mean), loss, tolerance=ROUNDING) for loss, _ in losses),
    )
