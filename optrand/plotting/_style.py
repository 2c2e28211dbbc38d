"""Style of the pictures: letters, marks, colours, numbers, and titles and legends that fit 3.3 inches or a page."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.figure import Figure, FigureBase, SubFigure
from matplotlib.gridspec import GridSpecFromSubplotSpec, SubplotSpec
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import Bbox, BboxTransformTo, TransformedBbox
from numpy.typing import NDArray

from optrand.base._numerals import format_above, format_below
from optrand.base._validation import Floats, check_epsilon, expect
from optrand.errors import InvalidInput

Place = Axes | FigureBase | None
"""Axes whose place the picture takes, a figure or a part of one, or None for a new figure."""

INK = "#1a1a1a"
DARK = "#00224e"
MIDDLE = "#707070"
LIGHT = "#d3d6de"

STYLE: Any = {
    "font.size": 8,
    "figure.titlesize": 8,
    "figure.labelsize": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "svg.hashsalt": "optrand",
    "pdf.fonttype": 42,
}

PROBABILITIES = LinearSegmentedColormap.from_list("probabilities", ["#ecedee", "#bcc6d6", "#62789a", DARK])
"""From the least likely, near white, to the likeliest, dark: also in grey."""

OUTPUTS = LinearSegmentedColormap.from_list("outputs", matplotlib.colormaps["viridis_r"](np.linspace(0.15, 1, 64)))
"""From low outputs, light, to high ones, dark, without the yellow that vanishes on white."""


@dataclass(frozen=True)
class Mark:
    """Look of one letter of a staircase signature ([B23], Definition 10)."""

    letter: str
    meaning: str
    stem: str
    marker: str
    fill: str


MARKS = (
    Mark("U", "U: highest, exp(ε) times the lowest", INK, "o", INK),
    Mark("S", "S: neither of the two", MIDDLE, "D", "#8a8678"),
    Mark("L", "L: lowest of its output", "#a0a0a0", "o", "#ffffff"),
    Mark("0", "0: never, where another label may", INK, "x", INK),
)


@dataclass(frozen=True)
class Limits:
    """Thresholds of the layout of pictures, each chosen by eye, at widths of 3.3 and 7 inches."""

    title_letters: float = 15.0  # per inch, in the letters of STYLE
    legend_letter: float = 0.058  # inches
    tick_letter: float = 0.062  # inches
    tick_line: float = 0.17  # inches between the tick labels of a vertical axis

    noise_outputs: int = 1201  # to which additive noise is rounded
    noise_tails: float = 5.0  # standard deviations beyond the labels, with all mass further out at the last output
    breaks: int = 3  # of an axis
    gap_steps: float = 6.0  # median distances of neighbouring outputs from which an axis may be broken
    gap_share: float = 0.1  # of the range of outputs from which it is
    break_width: float = 0.4  # inches

    panels: int = 6  # labels, or mechanisms of groups, with a panel each
    panel_height: float = 0.55  # inches, with its title
    low_panel: float = 0.5  # inches of a panel below which its axis has one tick
    narrow: float = 4.0  # inches of a picture below which legends take several lines, and margins have one tick
    stems: int = 250  # outputs up to which each has a stem, beyond which a density is drawn
    crowded: float = 4.0  # points of print between stems below which outputs stand by rank
    density_bins: int = 120  # groups of outputs
    faint: float = 0.01  # share of the highest density at which its axis ends
    matrix: int = 500  # rows and columns of the table beyond which they are drawn in groups
    joint: int = 150  # rows and columns of the joint distribution
    written: int = 8  # outputs with probabilities in their cells

    arcs: int = 40  # up to which each is drawn, beyond which those between the same groups of nodes are merged
    arc_groups: int = 12  # of nodes, in that case
    arc_points: int = 60
    widest: float = 5.0  # points of print of the arc with the largest mass
    thinnest: float = 0.3
    phases: int = 400  # components of a mixture beyond which this number of them is drawn, at even steps
    fewest_phases: int = 8  # components, whatever the number of their bins
    pieces: int = 20_000  # bins of all components
    bordered: int = 60  # bins of a component with borders between them
    curve_points: int = 800  # of reduced costs, besides the outputs
    unbroken: int = 12  # outputs below which the axis of reduced costs has no breaks
    whole_grid: int = 60  # size of a grid that is drawn whole
    least: float = 1e-9  # largest probability of an output, or weight of a component, below which it is left out
    cost_noise: float = 1e-13  # share of the multipliers below which a reduced cost is rounding

    bias_noise: float = 1e-7  # share of the deviation below which a bias is rounding
    budget_ticks: int = 6
    kept_marks: int = 20  # labels up to which each number kept has a mark, beyond which axes are logarithmic
    releases: int = 16  # points of a curve of composition
    errors: int = 2  # noise errors that a band reaches: about 19 times in 20 the truth is inside
    arrow_rise: float = 1.6  # factor by which an arrow stands above all times, and above another arrow
    size_ticks: int = 8  # sizes with a tick each
    listed: int = 21  # labels in the table of a report


LIMITS = Limits()


@contextmanager
def canvas(ax: Place, size: tuple[float, float]) -> Iterator[FigureBase]:
    """Open a figure of `size` inches in :data:`STYLE`, or the figure that takes the place of `ax`."""
    with fix_style():
        if ax is None:
            yield Figure(figsize=size, layout="constrained")
            return
        figure = ax if isinstance(ax, FigureBase) else _part_at(ax)
        whole = whole_figure(figure)
        if whole.get_layout_engine() is None:
            whole.set_layout_engine("constrained")
        figure.set_facecolor("white")
        yield figure


@contextmanager
def fix_style() -> Iterator[None]:
    """Set :data:`STYLE` on white paper, whatever the style of the session, of which only the font is used.

    DejaVu Sans, which comes with matplotlib, has the glyphs that the font of the session may lack.
    """
    # By name, since reading the backend would load pyplot.
    fonts = {name: matplotlib.rcParams[name] for name in matplotlib.rcParams if name.startswith("font.")}
    if fonts["font.family"] != matplotlib.rcParamsDefault["font.family"]:
        fonts["font.family"] = [*fonts["font.family"], "DejaVu Sans"]
    with matplotlib.style.context(["default", fonts | STYLE]):
        yield


class _Taken(GridSpecFromSubplotSpec):
    """Place of axes that a picture took: a line for the axes, which keep their title, and the picture below it."""

    part: SubFigure


def _part_at(ax: object) -> SubFigure:
    """Return an empty part of the figure in the place of `ax`, after clearing any picture there."""
    if not isinstance(ax, Axes):
        raise InvalidInput(f"ax is of type {type(ax).__name__}, expected Axes or a figure of matplotlib, or None")
    place, figure = ax.get_subplotspec(), ax.get_figure()
    if place is None or figure is None:
        raise InvalidInput("ax has no place in a grid, which the picture could fill: make it with plt.subplots")
    grid = place.get_gridspec()
    if isinstance(grid, _Taken):
        grid.part.clear()
        return grid.part
    taken = _Taken(2, 1, place, height_ratios=[1e-3, 1])
    ax.set_subplotspec(taken[0])
    ax.set_axis_off()
    taken.part = figure.add_subfigure(taken[1])
    # Until the figure is laid out, matplotlib treats a grid in a grid as one in the whole figure.
    taken.part.bbox_relative.set(_box(place))
    return taken.part


def _box(place: SubplotSpec) -> Bbox:
    """Return the box of a place in a grid, or in a grid in a grid, as shares of the figure."""
    outer, grid = place.get_topmost_subplotspec(), place.get_gridspec()
    x, y = (np.cumsum(np.append(0.0, ratios)) for ratios in (grid.get_width_ratios(), grid.get_height_ratios()))
    columns, rows = place.colspan, place.rowspan
    corners = [
        [x[columns.start] / x[-1], 1 - y[rows.stop] / y[-1]],
        [x[columns.stop] / x[-1], 1 - y[rows.start] / y[-1]],
    ]
    box = Bbox(corners)
    return box if outer is place else TransformedBbox(box, BboxTransformTo(_box(outer))).frozen()


def whole_figure(figure: FigureBase) -> Figure:
    whole = figure.canvas.figure if isinstance(figure, SubFigure) else figure
    if not isinstance(whole, Figure):
        raise InvalidInput(f"figure is of type {type(figure).__name__}, expected a figure of matplotlib")
    return whole


def inches(figure: FigureBase) -> tuple[float, float]:
    # The stubs omit that a part of a figure has a box.
    part: Any = figure
    return float(part.bbox.width / part.dpi), float(part.bbox.height / part.dpi)


def side_by_side(figure: FigureBase, count: int, shared: str = "") -> list[Axes]:
    """Add panels in a row, or in a column if the figure is as narrow as a column of a page.

    If their horizontal axes are equal, `shared` is their name, written once below a column.
    """
    in_a_row = inches(figure)[0] >= 2.2 * count
    panels = figure.subplots(*((1, count) if in_a_row else (count, 1)), squeeze=False, sharex=bool(shared))
    for axes in panels[-1]:
        axes.set_xlabel(shared)
    return list(panels.ravel())


def set_title(figure: FigureBase, title: str) -> None:
    """Set the title of a picture, with line breaks that fit its width and leave no short last line."""
    letters = int(LIMITS.title_letters * inches(figure)[0])
    # Names of classes and groups may have dollar signs, which do not enclose formulas.
    figure.suptitle("\n".join(_break_line(line, letters) for line in title.split("\n")), parse_math=False)


def _break_line(line: str, letters: int) -> str:
    """Break a line into the least number that fits, about equally long, but not at a relation or after a number."""
    kept = re.sub(r" [=≤≥] |(?<=\d) (?=\w)", lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), line)
    few = max(1, len(textwrap.wrap(kept, letters)))
    texts = (textwrap.fill(kept, width) for width in range(1, letters + 1))
    return next(text for text in texts if text.count("\n") < few).replace("\N{NO-BREAK SPACE}", " ")


def set_legend(figure: FigureBase, handles: Sequence[Artist]) -> None:
    """Put a legend below the picture, in columns that fit its width."""
    longest = max(len(line) for handle in handles for line in str(handle.get_label()).split("\n"))
    columns = int(inches(figure)[0] / (0.48 + LIMITS.legend_letter * longest))
    rows = math.ceil(len(handles) / max(1, min(columns, len(handles))))
    figure.legend(
        handles=list(handles),
        loc="outside lower center",
        ncols=math.ceil(len(handles) / rows),
        handletextpad=0.5,
        columnspacing=1.2,
    )


def check_epsilons(epsilons: Iterable[float]) -> list[float]:
    expect(epsilons, Iterable, "epsilons", "a list of numbers")
    budgets = [check_epsilon(epsilon) for epsilon in epsilons]
    if not budgets:
        raise InvalidInput("epsilons is empty, expected at least one number")
    return budgets


MARKERS = "os^DvPX*<>ph"


def looks(names: Collection[object], kind: str) -> list[dict[str, Any]]:
    """Return one look per curve, no two with the same marker, so that they are distinguishable without colour."""
    if not 1 <= len(names) <= len(MARKERS):
        raise InvalidInput(f"{len(names)} {kind} for one picture, expected 1 to {len(MARKERS)}: draw several pictures")
    # Shades of cividis, and beyond four curves others, with neighbours far apart in lightness.
    shades = (DARK, "#8a8678", "#434e6c", "#b9a63f", "#6b1d2f", "#7fb0d6", "#a3521b", "#c9a0b8")
    lines = ("-", "--", "-.", ":")
    return [
        {
            "color": shades[i % len(shades)],
            "linestyle": lines[(i + i // len(lines)) % len(lines)],
            "marker": marker,
            "markerfacecolor": "white" if i % 2 else shades[i % len(shades)],
        }
        for i, marker in enumerate(MARKERS[: len(names)])
    ]


def set_logarithmic(axis: Axis, ticks: Sequence[float] = ()) -> None:
    """Make an axis logarithmic, with plain numbers at `ticks`, or at 1, 2 and 5 times powers of ten."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")  # type: ignore[attr-defined]
    low, high = axis.get_view_interval()
    axis.set_major_locator(_LogTicks(subs=(1, 2, 5) if high < 1000 * low else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=0)
    if ticks:
        axis.set_ticks(list(ticks))


class _LogTicks(LogLocator):
    """Ticks of a logarithmic axis at 1, 2 and 5 times powers of ten, or fewer if the axis is upright and short."""

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks, thinned so that their labels do not overlap."""
        ticks, axes = np.asarray(super().tick_values(vmin, vmax)), cast(Axis, self.axis).axes
        seen = ticks[(ticks >= vmin) & (ticks <= vmax)]
        most = 1 + int(axes.bbox.height / cast(Figure, axes.get_figure()).dpi / LIMITS.tick_line)
        if seen.size <= most or self.axis is axes.xaxis:
            return ticks
        tens = seen[np.isclose(np.log10(seen), np.rint(np.log10(seen)))]
        return tens if 2 <= tens.size <= most else seen[:: -(-seen.size // most)]


def set_integer_ticks(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))


def plain(value: float) -> str:
    """Write a number for print: without an exponent of ten, or with a superscript one."""
    return _typeset(f"{value:,.10g}" if 1e-4 < abs(value) < 1e7 else f"{value:g}")


def _typeset(numeral: str) -> str:
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    raised = re.sub(r"e([-+]\d+)$", lambda found: "·10" + str(int(found[1])).translate(digits), numeral)
    return re.sub(r"^1·", "", raised).replace("-", "\N{MINUS SIGN}")


def write_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def number_texts(numbers: Floats, apart: float = 0.0) -> list[str]:
    """Write increasing numbers in the fewest digits, at least three, that distinguish those more than `apart` apart."""
    gap = max(apart, float(np.diff(numbers).min(initial=math.inf)))
    for digits in range(3, 18):
        texts = [f"{number:.{digits}g}" for number in numbers]
        pairs = list(zip(texts, numbers.tolist(), strict=True))
        short = any("e+" in text and abs(number) < 1e6 for text, number in pairs)
        if not short and all(abs(float(text) - number) <= 0.1 * gap for text, number in pairs):
            break
    return [text.replace("-", "\N{MINUS SIGN}") for text in texts]


def below(number: float, digits: int) -> str:
    return _pad(format_below(number, digits), digits)


def above(number: float, digits: int) -> str:
    return _pad(format_above(number, digits), digits)


def _pad(numeral: str, digits: int) -> str:
    rounded = float(numeral)
    return _typeset(f"{rounded:#.{digits}g}") if rounded else "0"


def spread(count: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` positions out of `count`, with the first and the last, at equal steps if possible."""
    even = [size for size in range(4, most + 1) if (count - 1) % (size - 1) == 0]
    size = max(even, default=most) if count > most else count
    return np.linspace(0, count - 1, size).round().astype(np.intp)


def tick_labels(axis: Axis, labels: Floats, length: float, names: Sequence[str] = ()) -> None:
    """Put a tick at the rank of every label, or of every second, fifth, tenth, … one, to fit `length` inches.

    The first label always has one, even in the smallest picture. Ticks show `names` if there are any.
    """
    horizontal = axis.axis_name == "x"  # type: ignore[attr-defined]
    longest = max(map(len, names or (number_texts(labels[[0, -1]]) if labels.size > 1 else ["0"])))
    fitting = max(1.0, length / (LIMITS.tick_letter * (longest + 1.5) if horizontal else LIMITS.tick_line))
    step = next(
        size * 10**power for power in range(12) for size in (1, 2, 5) if labels.size <= fitting * size * 10**power
    )
    ranks = np.arange(0, labels.size, step)
    axis.set_ticks(ranks, label_texts(labels, ranks, names), parse_math=False)


def label_texts(labels: Floats, ranks: NDArray[np.intp], names: Sequence[str] = ()) -> list[str]:
    """Return the names of some labels, or their numbers if there are no names."""
    return [names[rank] for rank in ranks.tolist()] if names else number_texts(labels[ranks])


def short_names(names: Iterable[object]) -> tuple[str, ...]:
    """Return the names of classes as texts of at most 16 letters."""
    texts = ("missing" if name is None else str(name) for name in names)
    return tuple(f"{text[:15]}…" if len(text) > 16 else text for text in texts)


def line_edges(numbers: Floats) -> Floats:
    """Return the edges of the cells around increasing numbers: halfway between, and as far beyond both ends."""
    if numbers.size == 1:
        return np.array([numbers[0] - 0.5, numbers[0] + 0.5])
    middles = (numbers[1:] + numbers[:-1]) / 2
    edges: Floats = np.concatenate(([2 * numbers[0] - middles[0]], middles, [2 * numbers[-1] - middles[-1]]))
    return edges


def add_log_scale(figure: FigureBase, mesh: Any, axes: Axes | list[Axes], name: str) -> None:
    """Add the scale of a heat map with logarithmic shades, with a few numbers at equal ratios."""
    low, high = mesh.norm.vmin, mesh.norm.vmax
    count = 5 if inches(figure)[0] >= 4 else 3
    ticks = np.geomspace(low, high, count) if high > 1.2 * low else np.array([math.sqrt(low * high)])
    clipped = bool((mesh.get_array() < low).any())
    extend = "min" if clipped else "neither"
    bar = figure.colorbar(mesh, ax=axes, location="bottom", aspect=35, pad=0.02, extend=extend)
    bar.set_ticks(ticks.tolist(), labels=[plain(float(f"{tick:.2g}")) for tick in ticks])
    bar.minorticks_off()
    bar.outline.set_visible(False)
    bar.set_label(f"{name} (lightest: that or less, not 0)" if clipped else name)


def log_shades(amounts: Floats) -> LogNorm:
    """Return logarithmic shades for positive amounts, over at most five powers of ten."""
    positive = amounts[amounts > 0]
    high = float(positive.max())
    low = max(float(positive.min()), high / 1e5)
    return LogNorm(low, high) if high > low * 1.001 else LogNorm(low / 1.1, high * 1.1)
