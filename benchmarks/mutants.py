"""The mutations: plausible slips of the package's own pieces, with the claims and tests that should notice them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MUTATIONS", "SMOKE", "Mutation"]


@dataclass(frozen=True)
class Mutation:
    """A wrong edit of the package.

    Attributes
    ----------
    name : str
        What is wrong, in words.
    file : str
        Under ``optrand/``.
    old, new : str
        A text that is in the file exactly once, and what stands there instead.
    tests : tuple of str
        Test files under ``tests/`` of which one should notice.
    claims : tuple of str
        The claims of the papers that speak of the broken piece, by their names: each should notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    claims: tuple[str, ...] = ()


NOISE = (
    Mutation(
        "discrete Laplace noise of half the scale",
        "sampling/discrete_noise.py",
        "return self._signed(lambda: self.geometric(scale))",
        "return self._signed(lambda: self.geometric(scale / 2))",
        ("test_priors.py",),
        (
            "G21 Algorithm 4: draws",
            "E22 Theorem 1: draws",
            "B23 Algorithm 4: noise",
            "B23 Appendix F: drawn",
        ),
    ),
    Mutation(
        "noise in integers that is zero twice as often",
        "sampling/discrete_noise.py",
        "if drawn or not negative:",
        "if drawn >= 0:",
        ("test_priors.py",),
        (
            "G21 Algorithm 4: draws",
            "B23 Algorithm 4: noise",
            "B23 Appendix F: drawn",
        ),
    ),
    Mutation(
        "discrete staircase whose stairs fall by exp(-2 epsilon)",
        "sampling/discrete_noise.py",
        "within() + sensitivity * self.geometric(1 / epsilon)",
        "within() + sensitivity * self.geometric(1 / (2 * epsilon))",
        ("test_additive.py",),
        ("B23 Appendix F: drawn",),
    ),
    Mutation(
        "discrete staircase with stairs a step too short",
        "sampling/discrete_noise.py",
        "within() + sensitivity * self.geometric(1 / epsilon)",
        "within() + (sensitivity - 1) * self.geometric(1 / epsilon)",
        ("test_additive.py",),
        ("B23 Appendix F: drawn",),
    ),
    Mutation(
        "discrete staircase that drops a step too late",
        "sampling/discrete_noise.py",
        "return rise + self.below(lower)",
        "return rise + 1 + self.below(lower)",
        ("test_additive.py",),
        ("B23 Appendix F: drawn",),
    ),
    Mutation(
        "uniform integers that reach their bound",
        "sampling/discrete_noise.py",
        "while (value := self.take(bits)) >= bound:",
        "while (value := self.take(bits)) > bound:",
        ("test_priors.py",),
    ),
    Mutation(
        "Laplace noise of half the scale",
        "baselines/additive.py",
        "return LaplaceNoise(self.sensitivity / self.epsilon)",
        "return LaplaceNoise(self.sensitivity / (2 * self.epsilon))",
        ("test_additive.py",),
        ("B23 Definition 18",),
    ),
    Mutation(
        "discrete Laplace noise drawn for twice the epsilon that it states",
        "baselines/additive.py",
        "discrete_laplace(self.steps / Fraction(self.epsilon), count",
        "discrete_laplace(self.steps / Fraction(2 * self.epsilon), count",
        ("test_additive.py",),
        ("B23 Appendix F: drawn",),
    ),
    Mutation(
        "continuous staircase with the shares of its two levels exchanged",
        "baselines/additive.py",
        "within = np.where(on_upper, ",
        "within = np.where(~on_upper, ",
        ("test_additive.py",),
        ("B23 Appendix F: drawn in floats",),
    ),
    Mutation(
        "staircase noise twice as low on its lower level",
        "baselines/noise.py",
        "level: Floats = self.height * (upper + self.factor * (high - low - upper))",
        "level: Floats = self.height * (upper + self.factor / 2 * (high - low - upper))",
        ("test_additive.py",),
    ),
    Mutation(
        "staircase density whose level ends a step late",
        "baselines/noise.py",
        "(whole + (rest >= self.upper))",
        "(whole + (rest > self.upper))",
        ("test_additive.py",),
        ("B23 Definition 19",),
    ),
)

SAMPLERS = (
    Mutation(
        "samplers count a running sum that equals the word as not passed",
        "sampling/drawing.py",
        "surely = bisect_right(sums, (bits * total) >> length)",
        "surely = bisect_left(sums, (bits * total) >> length)",
        ("test_sampling.py",),
    ),
    Mutation(
        "thresholds of samplers rounded up",
        "sampling/drawing.py",
        "np.minimum((sums << width) // total,",
        "np.minimum(-(-(sums << width) // total),",
        ("test_sampling.py",),
    ),
    Mutation(
        "a sampler draws the output after the one that the word tells",
        "sampling/tables.py",
        "guide = np.where(mixed, ~below, below).ravel()",
        "guide = np.where(mixed, ~below, np.minimum(below + 1, n - 1)).ravel()",
        ("test_sampling.py",),
        ("E22 Theorem 1: draws",),
    ),
    Mutation(
        "arcs drawn as if every label were in the first one's",
        "sampling/intervals.py",
        "leaves, top = rows + self._tree.leaves, self._tree.levels - 1",
        "leaves, top = 0 * rows + self._tree.leaves, self._tree.levels - 1",
        ("test_arc_sampling.py",),
    ),
    Mutation(
        "uniform numbers without rejection",
        "sampling/uniform.py",
        "numbers // int(size) * int(size) - 1 for size",
        "numbers - int(size // size) for size",
        ("test_closed_forms.py",),
        ("G21 Corollary 2: sampler",),
    ),
    Mutation(
        "rounding to the nearest knot",
        "sampling/rounding.py",
        "up = drawn < edge\n",
        "up = cells.share >= 0.5\n",
        ("test_rounding.py",),
        (
            "E22 Lemma 9: draws",
            "B23 Section 3.1: rounding",
            "B23 Section 3.1: continuous labels",
        ),
    ),
    Mutation(
        "rounding up with the probability of rounding down",
        "sampling/rounding.py",
        "up = drawn < edge\n",
        "up = drawn >= edge\n",
        ("test_rounding.py",),
        (
            "E22 Lemma 9: draws",
            "B23 Section 3.1: rounding",
            "B23 Section 3.1: variance of rounding",
            "B23 Section 3.1: continuous labels",
        ),
    ),
    Mutation(
        "weight of rounded labels moved to the wrong one of two knots",
        "sampling/rounding.py",
        "below = np.bincount(self.left, weights * (1 - self.share), self.knots.size)\n"
        "        above = np.bincount(self.left + 1, weights * self.share, self.knots.size)",
        "below = np.bincount(self.left, weights * self.share, self.knots.size)\n"
        "        above = np.bincount(self.left + 1, weights * (1 - self.share), self.knots.size)",
        ("test_rounding.py",),
    ),
    Mutation(
        "coins that go on after they are decided",
        "baselines/coins.py",
        "undecided = undecided & drawn",
        "undecided = undecided & ~drawn",
        ("test_vector.py",),
        ("Z25 Theorem 1: draws",),
    ),
)

PRIORS = (
    Mutation(
        "histogram noise of half the scale: a changed label counts once",
        "sampling/priors.py",
        "scale = 2 / Fraction(",
        "scale = 1 / Fraction(",
        ("test_priors.py",),
        (
            "G21 Algorithm 4: draws",
            "B23 Algorithm 4: noise",
        ),
    ),
    Mutation(
        "histogram noise of twice the scale",
        "sampling/priors.py",
        "scale = 2 / Fraction(",
        "scale = 4 / Fraction(",
        ("test_priors.py",),
        (
            "G21 Algorithm 4: draws",
            "B23 Algorithm 4: noise",
        ),
    ),
    Mutation(
        "histogram without its noise",
        "sampling/priors.py",
        "return tuple(count + shift for count, shift in zip(",
        "return tuple(count for count, _ in zip(",
        ("test_priors.py",),
        (
            "G21 Algorithm 4: draws",
            "B23 Algorithm 4: noise",
        ),
    ),
    Mutation(
        "negative counts of a private prior made positive",
        "sampling/priors.py",
        "tuple(max(count, 0) for count in noisy)",
        "tuple(abs(count) for count in noisy)",
        ("test_priors.py",),
        ("G21 Algorithm 4: draws",),
    ),
    Mutation(
        "budget split ignored: labels get all of it",
        "sampling/priors.py",
        "rest = float_below(Fraction(whole) - Fraction(part))",
        "rest = float_below(Fraction(whole))",
        ("test_priors.py", "test_release.py"),
        ("B23 Algorithm 3: privacy",),
    ),
    Mutation(
        "budget of the prior grows with the table",
        "sampling/priors.py",
        "min(math.sqrt(k / n), PRIOR_SHARE * whole)",
        "min(math.sqrt(n / k), PRIOR_SHARE * whole)",
        ("test_priors.py",),
        ("B23 Appendix C: split",),
    ),
    Mutation(
        "release job: prior published without noise",
        "release/job.py",
        "estimate = private_prior(counts, split.prior, source=entropy)\n",
        "estimate = replace(private_prior(counts, split.prior, source=entropy), counts=tuple(counts.tolist()))\n",
        ("test_release.py",),
        ("B23 Algorithm 3: privacy",),
    ),
    Mutation(
        "release job: labels drawn at the whole epsilon",
        "release/job.py",
        "question = self._question(split.labels)",
        "question = self._question(self.epsilon)",
        ("test_release.py",),
        ("B23 Algorithm 3: privacy",),
    ),
    Mutation(
        "release job: the prior is not used",
        "release/job.py",
        "best = tabulate((self.rule or solve)(replace(question, prior=prior)))",
        "best = tabulate((self.rule or solve)(question))",
        ("test_release.py",),
    ),
    Mutation(
        "release job: the budget of the prior is not counted",
        "release/job.py",
        "realised_epsilon=float_above(Fraction(split.prior) + Fraction(proof.epsilon))",
        "realised_epsilon=float_above(Fraction(proof.epsilon))",
        ("test_release.py",),
        ("B23 Algorithm 3: privacy",),
    ),
)

RESPONSE = (
    Mutation(
        "randomized response at twice the epsilon",
        "closed_forms/response.py",
        "shrink = math.exp(-epsilon)",
        "shrink = math.exp(-2 * epsilon)",
        ("test_closed_forms.py",),
        (
            "G21 Lemma 1: integer tables",
            "G21 Theorem 3: closed form",
            "B23 Definition 21",
        ),
    ),
    Mutation(
        "randomized response at half the epsilon",
        "closed_forms/response.py",
        "shrink = math.exp(-epsilon)",
        "shrink = math.exp(-epsilon / 2)",
        ("test_closed_forms.py",),
        (
            "G21 Lemma 1: integer tables",
            "G21 Theorem 3: closed form",
            "B23 Definition 21",
        ),
    ),
    Mutation(
        "RRTop-k keeps the k least likely labels",
        "closed_forms/response.py",
        "np.argsort(-problem.prior, kind=",
        "np.argsort(problem.prior, kind=",
        ("test_closed_forms.py",),
        ("G21 Section 3.1: objective of RRTop-k",),
    ),
    Mutation(
        "RRTop-k keeps the first k labels: the prior is ignored",
        "closed_forms/response.py",
        'kept = np.sort(np.argsort(-problem.prior, kind="stable")[:size])',
        "kept = np.arange(size)",
        ("test_closed_forms.py",),
        ("G21 Section 3.1: objective of RRTop-k",),
    ),
    Mutation(
        "RRWithPrior keeps the least likely labels",
        "closed_forms/response.py",
        "kept[start : start + step] = block >= smallest",
        "kept[start : start + step] = block <= smallest",
        ("test_closed_forms.py",),
        (
            "G21 Corollary 2: integer tables",
            "G21 Theorem 3: closed form",
        ),
    ),
    Mutation(
        "RRWithPrior counts k from zero",
        "closed_forms/response.py",
        "k = np.arange(1, priors.shape[1])",
        "k = np.arange(priors.shape[1] - 1)",
        ("test_closed_forms.py",),
        (
            "G21 Corollary 2: integer tables",
            "G21 Theorem 3: closed form",
        ),
    ),
    Mutation(
        "RRWithPrior keeps a label too few",
        "closed_forms/response.py",
        "last = (surplus < gain[start : start + step] * falling[:, 1:]).sum(axis=1)",
        "last = np.maximum((surplus < gain[start : start + step] * falling[:, 1:]).sum(axis=1) - 1, 0)",
        ("test_closed_forms.py",),
        (
            "G21 Corollary 2: integer tables",
            "G21 Theorem 3: closed form",
        ),
    ),
    Mutation(
        "RRWithPrior ignores the prior: it keeps all labels",
        "closed_forms/response.py",
        "kept[start : start + step] = block >= smallest",
        "kept[start : start + step] = smallest >= 0",
        ("test_closed_forms.py",),
        (
            "G21 Corollary 2: integer tables",
            "G21 Theorem 3: closed form",
        ),
    ),
    Mutation(
        "RRWithPrior of a batch: coins of randomized response, and a second draw",
        "closed_forms/batch.py",
        "chances = [(ratio - 1) / (ratio + int(size) - 1) for size in distinct]",
        "chances = [ratio / (ratio + int(size) - 1) for size in distinct]",
        ("test_closed_forms.py",),
        ("G21 Corollary 2: sampler",),
    ),
    Mutation(
        "RRWithPrior of a batch releases labels that are not kept",
        "closed_forms/batch.py",
        "stays &= self.kept[np.arange(len(self)), array]",
        "stays &= array >= 0",
        ("test_closed_forms.py",),
        ("G21 Corollary 2: sampler",),
    ),
    Mutation(
        "debiased randomized response: outputs ten times too far",
        "closed_forms/debiased.py",
        "outputs = names + names.size / gain * offsets",
        "outputs = names + 10 * names.size / gain * offsets",
        ("test_closed_forms.py",),
        (
            "B23 Section 3.1: large epsilon",
            "B23 Definition 23",
        ),
    ),
    Mutation(
        "debiased randomized response: outputs for twice the epsilon",
        "closed_forms/debiased.py",
        "gain = math.expm1(checked_epsilon(epsilon))",
        "gain = math.expm1(2 * checked_epsilon(epsilon))",
        ("test_closed_forms.py",),
        (
            "B23 Section 3.1: large epsilon",
            "B23 Definition 23",
        ),
    ),
    Mutation(
        "named randomized response at the ratio squared",
        "release/named.py",
        "return Mechanism(problem, dual, names, arcs, privacy_ratio(problem.epsilon))",
        "return Mechanism(problem, dual, names, arcs, privacy_ratio(problem.epsilon / 2))",
        ("test_baseline_release.py",),
    ),
    Mutation(
        "randomized response on bins ignores the prior",
        "solvers/bins/path.py",
        "prior=problem.prior[kept] / total",
        "prior=np.full(kept.size, 1 / kept.size)",
        ("test_rr_on_bins.py",),
        (
            "B23 Table 1: bins",
            "B23 Table 1: predictors",
            "B23 Table 1: losses",
            "B23 Appendix G.3: figures",
        ),
    ),
    Mutation(
        "bins begin a label too early",
        "solvers/bins/path.py",
        "np.searchsorted(problem.labels, below + (above - below) / 2)",
        "np.searchsorted(problem.labels, below)",
        ("test_rr_on_bins.py",),
        (
            "B23 Table 1: bins",
            "B23 Table 1: predictors",
            "B23 Table 1: losses",
            "B23 Appendix G.3: figures",
            "B23 Definition 22",
        ),
    ),
    Mutation(
        "outputs of bins are their means: nothing is drawn towards the whole mean",
        "solvers/bins/costs.py",
        "return share / (1 + share) * distances",
        "return distances",
        ("test_rr_on_bins.py",),
        (
            "B23 Table 1: bins",
            "B23 Table 1: predictors",
            "B23 Table 1: losses",
            "B23 Appendix G.3: figures",
        ),
    ),
    Mutation(
        "costs of bins for paths are not clamped below",
        "solvers/bins/costs.py",
        "np.minimum(gap, anchor - self.least_output[first] + offset, out=gap)",
        "pass",
        ("test_rr_on_bins.py",),
    ),
    Mutation(
        "nodes within a block are not compared",
        "solvers/bins/monge.py",
        "better = offer(nodes[1:], found, inner)",
        "pass",
        ("test_rr_on_bins.py",),
    ),
)

MECHANISMS = (
    Mutation(
        "unbiased range ten times too wide",
        "model/problem.py",
        "overhang = (high - low) / (privacy_ratio(epsilon) - 1)",
        "overhang = 10 * (high - low) / (privacy_ratio(epsilon) - 1)",
        ("test_problem.py",),
        ("B23 Algorithm 1",),
    ),
    Mutation(
        "unbiased range that ends at the labels",
        "model/problem.py",
        "overhang = (high - low) / (privacy_ratio(epsilon) - 1)",
        "overhang = 0 * (high - low) / (privacy_ratio(epsilon) - 1)",
        ("test_problem.py",),
    ),
    Mutation(
        "feasible outputs that end a label short",
        "model/outputs.py",
        "low = Fraction(lowest, scale) - (total - len(whole) * lowest) / reach",
        "low = Fraction(lowest, scale) - (total - len(whole) * lowest) / (len(whole) * reach)",
        ("test_grids.py",),
        (
            "B23 Algorithm 1",
            "B23 Algorithm 2",
        ),
    ),
    Mutation(
        "feasible outputs for twice the epsilon",
        "model/outputs.py",
        "low, high = _ends(names, privacy_ratio(budget))",
        "low, high = _ends(names, privacy_ratio(2 * budget))",
        ("test_grids.py",),
        (
            "B23 Algorithm 1",
            "B23 Algorithm 2",
        ),
    ),
    Mutation(
        "arcs end a label early",
        "model/staircase.py",
        "return cls((arcs.first <= labels) & (labels <= arcs.last), arcs.outputs, arcs.masses)",
        "return cls((arcs.first <= labels) & (labels < arcs.last), arcs.outputs, arcs.masses)",
        ("test_staircase.py", "test_merging.py"),
        (
            "B23 Appendix G.3: trend",
            "B23 Appendix G.3: figures",
        ),
    ),
    Mutation(
        "columns of one label dropped from linear programs' answers",
        "model/staircase.py",
        "            if mass > negligible * high / ratio:\n                members.append(column > middle)",
        "            if mass > negligible * high / ratio and (column > middle).sum() > 1:\n"
        "                members.append(column > middle)",
        ("test_staircase.py",),
        (
            "G21 Lemma 1: integer tables",
            "B23 Theorem 6: outputs",
        ),
    ),
    Mutation(
        "weights of columns in a flow ignore the prior",
        "model/feasibility.py",
        "inside = np.concatenate(([0.0], np.cumsum(prior)))",
        "inside = np.linspace(0.0, 1.0, prior.size + 1)",
        ("test_flow_equations.py",),
    ),
    Mutation(
        "flows solved for another prior: labels are equally likely",
        "solvers/flow/program.py",
        "        prior /= prior.sum()",
        "        prior = np.full_like(prior, 1 / prior.size)",
        ("test_flow.py",),
        ("B23 Theorem 6: outputs",),
    ),
    Mutation(
        "column generation that adds no columns to the first ones, intervals",
        "solvers/grid/column_generation.py",
        "cheap = np.flatnonzero(prices.costs < 0)",
        "cheap = np.flatnonzero(prices.costs < 0)[:0]",
        ("test_solvers.py",),
    ),
    Mutation(
        "first rows of node equations have 1 / E for 1 / (E - 1)",
        "model/feasibility.py",
        "np.concatenate((1 / math.expm1(epsilon) + ~starts,",
        "np.concatenate((1 / math.exp(epsilon) + ~starts,",
        ("test_flow_equations.py",),
        ("B23 Theorem 6: outputs",),
    ),
    Mutation(
        "flows tabulated without exact means",
        "mechanism/flow_tabulation.py",
        "if not problem.unbiased or not found.largest_bias:",
        "if not problem.unbiased or found.largest_bias:",
        ("test_flow_tabulation.py",),
        ("B23 Definition 23",),
    ),
    Mutation(
        "tables tabulated without exact means",
        "mechanism/tabulation.py",
        "    if not any(biases):\n        return outputs, weights",
        "    if biases:\n        return outputs, weights",
        ("test_tabulation.py", "test_completion.py"),
        ("B23 Theorem 6: existence",),
    ),
    Mutation(
        "ratios of integers rounded to above exp(epsilon)",
        "base/arithmetic.py",
        "return 1 + math.floor(low / step) * step",
        "return 1 + math.ceil(low / step) * step",
        ("test_exact.py",),
        (
            "G21 Lemma 1: integer tables",
            "B23 Definition 21",
        ),
    ),
    Mutation(
        "knots where rounding adds most",
        "studies/placement.py",
        "least[middle] = np.minimum.reduceat(totals, starts)",
        "least[middle] = np.maximum.reduceat(totals, starts)",
        ("test_continuous.py",),
    ),
    Mutation(
        "a continuous label goes to the knot above",
        "studies/continuous.py",
        "self.mechanism.sample(unbiased_rounding(values, self.knots, source=source), source=source)",
        "self.mechanism.sample(self.knots[np.searchsorted(self.knots, values)], source=source)",
        ("test_continuous.py",),
        ("B23 Section 3.1: continuous labels",),
    ),
)

CERTIFICATES = (
    Mutation(
        "lower bounds with the wrong sign of what columns fall below 0",
        "certificates/bound.py",
        "return Fraction(base * mass + lowest * share, mass << digits)",
        "return Fraction(base * mass - lowest * share, mass << digits)",
        ("test_certificate.py",),
        ("B23 Theorem 6: outputs",),
    ),
    Mutation(
        "lower bounds with exp(epsilon) rounded down",
        "certificates/bound.py",
        "return -((-above.numerator << shift) // above.denominator), shift",
        "return (above.numerator << shift) // above.denominator, shift",
        ("test_certificate.py", "test_exact_squared.py"),
    ),
    Mutation(
        "lower bounds that do not pay for bias",
        "certificates/bound.py",
        "return part + sum(-slope * slope * below",
        "return part + sum(0 * slope * below",
        ("test_certificate.py",),
    ),
    Mutation(
        "certificates that take any bias for rounding",
        "certificates/measurements.py",
        "if problem.unbiased and not bias <= tolerance * scale:",
        "if problem.unbiased and not bias <= scale:",
        ("test_certificate.py",),
    ),
    Mutation(
        "certificates of mechanisms of twice their epsilon",
        "certificates/measurements.py",
        "private = ratio <= exp_bracket(problem.epsilon)[0]",
        "private = ratio <= exp_bracket(2 * problem.epsilon)[0]",
        ("test_certificate.py",),
    ),
)

ESTIMATES = (
    Mutation(
        "debiasing that looks the labels' weights up in the transposed matrix",
        "baselines/randomization.py",
        "weights: Floats = self.inverse.T[",
        "weights: Floats = self.inverse[",
        ("test_cluster.py",),
        ("E22 Lemma 3: as the package has it",),
    ),
    Mutation(
        "weights of losses under RRTop-k: the label's own is 1 too small",
        "estimate/weights.py",
        "+= (gain + counts[:, 0]) / gain",
        "+= counts[:, 0] / gain",
        ("test_estimate.py",),
        (
            "G21 Theorem 9: weights",
            "G21 Equation 17",
            "G21 Lemma 18: as the package has it",
            "G21 Theorem 17",
            "G21 Lemma 20",
        ),
    ),
    Mutation(
        "weights of losses under RRTop-k: 1 / E for 1 / (E - 1)",
        "estimate/weights.py",
        "weights = np.where(mask, -1 / gain, 0.0)",
        "weights = np.where(mask, -1 / (gain + 1), 0.0)",
        ("test_estimate.py",),
        (
            "G21 Theorem 9: weights",
            "G21 Equation 17",
            "G21 Lemma 18: as the package has it",
            "G21 Theorem 17",
            "G21 Lemma 20",
        ),
    ),
    Mutation(
        "weights of losses under resampling are not divided by what is kept",
        "estimate/weights.py",
        "found: Floats = weights / (1 - share)",
        "found: Floats = weights / 1.0",
        ("test_estimate.py",),
    ),
    Mutation(
        "debiased values with the wrong sign of their steps",
        "estimate/debiasing.py",
        "steps = np.diff(columns, axis=0) / self.lengths[:, np.newaxis]",
        "steps = -np.diff(columns, axis=0) / self.lengths[:, np.newaxis]",
        ("test_estimate.py",),
        ("G21 Theorem 9: weights",),
    ),
    Mutation(
        "projected histogram without its projection",
        "estimate/histograms.py",
        "return project_to_simplex(self.shares)",
        "return self.shares",
        ("test_estimate.py",),
    ),
    Mutation(
        "projection that clips and does not add up",
        "estimate/histograms.py",
        "projected: Floats = np.maximum(given - theta, 0.0)",
        "projected: Floats = np.maximum(given, 0.0)",
        ("test_estimate.py",),
    ),
    Mutation(
        "intervals by Hoeffding's bound of one side",
        "estimate/intervals.py",
        "math.sqrt(math.log(2 / (1 - confidence)) / (2 * spread.size))",
        "math.sqrt(math.log(1 / (1 - confidence)) / (2 * spread.size))",
        ("test_estimate.py",),
    ),
)

CLUSTERS = (
    Mutation(
        "one-hot bits with all of epsilon each",
        "baselines/vector.py",
        "return privacy_ratio(self.epsilon / 2)",
        "return privacy_ratio(self.epsilon)",
        ("test_vector.py",),
        (
            "Z25 Theorem 1",
            "Z25 Section 3.1: local to central",
            "Z25 Equation 24",
        ),
    ),
    Mutation(
        "one-hot bits with a quarter of epsilon each",
        "baselines/vector.py",
        "return privacy_ratio(self.epsilon / 2)",
        "return privacy_ratio(self.epsilon / 4)",
        ("test_vector.py",),
        ("Z25 Equation 24",),
    ),
    Mutation(
        "one-hot bits: the bit of the next class is set",
        "baselines/vector.py",
        "packed[np.arange(classes.size), classes >> 3] ^= (128 >> (classes & 7)).astype(np.uint8)",
        "classes = (classes + 1) % self.k\n"
        "        packed[np.arange(classes.size), classes >> 3] ^= (128 >> (classes & 7)).astype(np.uint8)",
        ("test_vector.py",),
        ("Z25 Theorem 1: draws",),
    ),
    Mutation(
        "ALIBI's noise of half the scale",
        "baselines/vector.py",
        "        return 2 / self.epsilon",
        "        return 1 / self.epsilon",
        ("test_vector.py",),
        (
            "Z25 Equation 29",
            "Z25 Appendix B.2: privacy",
        ),
    ),
    Mutation(
        "ALIBI's soft labels at half the epsilon",
        "baselines/vector.py",
        "soft *= self.epsilon\n",
        "soft *= self.epsilon / 2\n",
        ("test_vector.py",),
        ("Z25 Equation 29",),
    ),
    Mutation(
        "shares of clusters with half the noise",
        "baselines/cluster.py",
        "noise = np.array(discrete_laplace(self.noise_scale, counts.size",
        "noise = np.array(discrete_laplace(self.noise_scale / 2, counts.size",
        ("test_cluster.py",),
        ("E22 Theorem 1: draws",),
    ),
    Mutation(
        "shares of clusters raised to the square of the threshold only",
        "baselines/cluster.py",
        "cluster_distribution([Fraction(count, size) for count in row], self.threshold)",
        "cluster_distribution([Fraction(count, size) for count in row], self.threshold**2)",
        ("test_cluster.py",),
        ("E22 Theorem 1: draws",),
    ),
    Mutation(
        "the curator states the printed epsilon, half of what the noise costs",
        "baselines/cluster.py",
        "return float_above(2 / self.noise_scale + ",
        "return float_above(1 / self.noise_scale + ",
        ("test_cluster.py",),
        (
            "E22 Theorem 1: as the package has it",
            "E22 Theorem 1: noisy labels alone",
            "E22 Section 6: privacy",
        ),
    ),
    Mutation(
        "labels of clusters resampled for twice their epsilon",
        "baselines/cluster.py",
        "(privacy_ratio(checked_epsilon(split.labels, ",
        "(privacy_ratio(2 * checked_epsilon(split.labels, ",
        ("test_cluster.py",),
        ("E22 Corollary 2: privacy",),
    ),
    Mutation(
        "labels of a cluster drawn from the distribution of the first one",
        "baselines/cluster.py",
        "drawn[rows] = LabelRandomization(distribution, self.resampling)",
        "drawn[rows] = LabelRandomization(distributions[0], self.resampling)",
        ("test_cluster.py",),
        ("E22 Theorem 1: draws",),
    ),
    Mutation(
        "labels stay with half the probability of not being resampled",
        "baselines/randomization.py",
        "weights[np.diag_indices(self.k)] += int((1 - self.resampling) * scale)",
        "weights *= 2\n"
        "        weights[np.diag_indices(self.k)] += int((1 - self.resampling) * scale)\n"
        "        scale += int(self.resampling * scale)",
        ("test_cluster.py",),
        ("E22 Theorem 1: draws",),
    ),
    Mutation(
        "uniform response at twice the epsilon",
        "baselines/randomization.py",
        "        ratio = privacy_ratio(self.epsilon)\n",
        "        ratio = privacy_ratio(2 * self.epsilon)\n",
        ("test_cluster.py",),
        ("E22 Corollary 1: as the package has it",),
    ),
    Mutation(
        "priors of clusters given to the rows of the next cluster",
        "baselines/cluster.py",
        "rows: Floats = self.probabilities[self.groups.index]",
        "rows: Floats = np.roll(self.probabilities, 1, axis=0)[self.groups.index]",
        ("test_cluster.py",),
    ),
    Mutation(
        "priors of clusters learned at twice their budget",
        "baselines/cluster.py",
        "learned = [private_prior(counts, epsilon, source=words)",
        "learned = [private_prior(counts, 2 * epsilon, source=words)",
        ("test_cluster.py",),
        ("G21 Algorithm 4: draws",),
    ),
    Mutation(
        "peers flip half as many labels as they say",
        "baselines/peer_to_peer.py",
        "flipped = array ^ self._coins(self.flip, groups.n, words)",
        "flipped = array ^ self._coins(self.flip / 2, groups.n, words)",
        ("test_peer_to_peer.py",),
        ("E22 Lemma 9: draws",),
    ),
    Mutation(
        "peers copy their own label",
        "baselines/peer_to_peer.py",
        "copies = flipped[members[starts[groups.index] + chosen]]",
        "copies = flipped",
        ("test_peer_to_peer.py",),
        ("E22 Lemma 9: draws",),
    ),
    Mutation(
        "accounting of peers with a user too many",
        "baselines/peer_accounting.py",
        "(size - 1 - ones, flip)",
        "(size - ones, flip)",
        ("test_peer_to_peer.py",),
        ("E22 Lemma 9: as the package has it",),
    ),
    Mutation(
        "pure epsilon of flips that forgets the label that stays",
        "baselines/peer_to_peer.py",
        "return log_above((1 - rarer) / rarer) if rarer else math.inf",
        "return log_above(1 / rarer) if rarer else math.inf",
        ("test_peer_to_peer.py",),
        ("E22 Section 5.1: as the package has it",),
    ),
)

SOLVING = (
    Mutation(
        "bound in floats that takes roots for exact",
        "certificates/quick.py",
        "slack += np.where(rooted, off_zero, 0.0)",
        "slack += np.where(rooted, 0.0 * off_zero, 0.0)",
        ("test_quick.py",),
    ),
    Mutation(
        "bound in doubles that takes roots for exact",
        "certificates/doubles.py",
        "slack += off + (abs(height) if end == root else max(height, 0.0))",
        "slack += 0.0 * off + (0.0 if end == root else max(height, 0.0))",
        ("test_doubles.py",),
    ),
    Mutation(
        "bound in doubles whose sums forget what rounding takes",
        "certificates/doubles.py",
        "return found, lost + ((total - (found - taken)) + (term - taken))",
        "return found, lost + 0.0 * taken",
        ("test_doubles.py",),
    ),
    Mutation(
        "refined multipliers whose slopes stay",
        "solvers/dual_refinement.py",
        "np.where(weights > 0, dual.beta + beta, 0.0)",
        "dual.beta",
        ("test_dual_repair.py",),
    ),
    Mutation(
        "refined multipliers for labels in the place of mean outputs",
        "solvers/dual_refinement.py",
        "cost=-np.concatenate((support.gain(means),",
        "cost=-np.concatenate((support.gain(self.problem.labels),",
        ("test_dual_repair.py",),
    ),
    Mutation(
        "bound in floats with epsilon for exp(epsilon)",
        "certificates/extended.py",
        "return np.longdouble(math.expm1(epsilon) * (1 + 8 * FLOAT))",
        "return np.longdouble(epsilon * (1 + 8 * FLOAT))",
        ("test_quick.py",),
    ),
    Mutation(
        "gap in floats that forgives biased means",
        "certificates/quick.py",
        "abs(means - labels).max() <= CLOSE * width",
        "abs(means - labels).max() <= 1e-6 * width",
        ("test_quick.py",),
    ),
    Mutation(
        "coarse levels whose nodes get their weights from the wrong side",
        "solvers/reduced_dual/levels.py",
        "return sums[self.left] * (1 - self.share) + sums[self.left + 1] * self.share",
        "return sums[self.left] * self.share + sums[self.left + 1] * (1 - self.share)",
        ("test_reduced_dual.py",),
    ),
    Mutation(
        "reduced dual stretched by half of its value",
        "solvers/reduced_dual/reduced.py",
        "stretch = -(self.finest.gaps @ slopes) * self.unit",
        "stretch = -(self.finest.gaps @ slopes) * self.unit / 2",
        ("test_reduced_dual.py",),
    ),
    Mutation(
        "gaps drawn in proportion to their widths alone",
        "closed_forms/gap.py",
        "shares = self.d * (self.rho / self.reach) / (self.gain + 2)",
        "shares = self.d / self.d.sum() / (self.gain + 2) / self.gain",
        ("test_gap_response.py",),
    ),
    Mutation(
        "public phase that is uniform",
        "mechanism/phases.py",
        "theta = np.where(number < on_path, number // low % self.delay, (number - on_path) // more)",
        "theta = number % self.delay",
        ("test_phases.py",),
    ),
    Mutation(
        "many problems in the order in which they are done",
        "studies/many.py",
        "results = [answers[problem] for problem in given]",
        "results = list(answers.values())",
        ("test_many.py",),
    ),
)

RELEASES = (
    Mutation(
        "active set that ends when nothing of its first columns helps",
        "solvers/grid/active_set.py",
        "            only_given = False\n",
        "            return ActiveSet(state.staircase(), state.dual(problem), step)\n",
        ("test_active_set.py",),
    ),
    Mutation(
        "active set whose multipliers forget the slopes",
        "solvers/grid/active_set.py",
        "Fraction(b) * Fraction(y)",
        "Fraction(b) * 0",
        ("test_active_set.py",),
    ),
    Mutation(
        "further words of a record that forget its id",
        "sampling/keyed.py",
        "key = hashlib.blake2b(block, digest_size=KEY_BYTES, key=self._further).digest()",
        "key = hashlib.blake2b(block[:8], digest_size=KEY_BYTES, key=self._further).digest()",
        ("test_keyed.py",),
    ),
    Mutation(
        "keys of two columns that are one",
        "sampling/keyed.py",
        "return _derived(master, release, dataset, column, purpose, group, mechanism)",
        "return _derived(master, release, dataset, purpose, group, mechanism)",
        ("test_keyed.py",),
    ),
    Mutation(
        "fields of a derivation without their lengths",
        "sampling/keyed.py",
        'info = b"".join(struct.pack("<Q", len(field)) + field for field in encoded)',
        'info = b"".join(encoded)',
        ("test_keyed.py",),
    ),
    Mutation(
        "odometer that charges a row named twice once",
        "accounting/odometer.py",
        "if np.unique(places).size != places.size:",
        "if np.unique(places).size > places.size:",
        ("test_odometer.py",),
    ),
    Mutation(
        "odometer that replaces what was spent",
        "accounting/odometer.py",
        "sums = [self._sums[code] + spent for code in codes.tolist()]",
        "sums = [spent for code in codes.tolist()]",
        ("test_odometer.py",),
    ),
    Mutation(
        "realised epsilon of the first row",
        "accounting/odometer.py",
        "for code in np.unique(self._codes).tolist()",
        "for code in self._codes[:1].tolist()",
        ("test_odometer.py",),
    ),
    Mutation(
        "posterior means with all of epsilon as the noise's rate",
        "sampling/smoothing.py",
        "max(estimate.epsilon / 2, SMALLEST_NORMAL)",
        "max(estimate.epsilon, SMALLEST_NORMAL)",
        ("test_smoothing.py",),
    ),
    Mutation(
        "means over a bin without the side below",
        "sampling/smoothing.py",
        "above * upper - below * lower",
        "above * upper",
        ("test_smoothing.py",),
    ),
    Mutation(
        "smoothed prior without a floor",
        "sampling/smoothing.py",
        "(1 - FLOOR) * (expected / expected.sum()) + FLOOR / k",
        "expected / expected.sum()",
        ("test_smoothing.py",),
    ),
    Mutation(
        "errors of counts that forget the prior's own variance",
        "release/conditioning.py",
        "np.maximum(squares - prior, 0.0)",
        "np.maximum(squares, 0.0)",
        ("test_conditioning.py",),
    ),
)

MUTATIONS = (
    *NOISE,
    *SAMPLERS,
    *PRIORS,
    *RESPONSE,
    *MECHANISMS,
    *CERTIFICATES,
    *ESTIMATES,
    *CLUSTERS,
    *SOLVING,
    *RELEASES,
)

SMOKE = tuple(
    each
    for each in MUTATIONS
    if each.name in ("budget of the prior grows with the table", "one-hot bits with all of epsilon each")
)
"""Those of a small run."""
