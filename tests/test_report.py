"""The page of a mechanism: its text, that it stands alone, and that a real browser shows it."""

import base64
import html
import json
import math
import re
import shutil
import subprocess
from fractions import Fraction
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest
from commands import invoke

import optrand
from optrand.cli import UNVERIFIED, WRONG_INPUT
from optrand.mechanism._mechanism import Mechanism
from optrand.plotting import report
from optrand.plotting._saving import DRAWINGS
from optrand.plotting.report import (
    budget_facts,
    certificate_facts,
    group_report_page,
    label_numbers,
    odds,
    report_page,
    verdict,
)
from optrand.sampling._priors import BudgetSplit
from tests.pictures import read_number
from tests.tables import mechanism_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here: `make system-deps` installs it")


def solved(k=5, epsilon=1.0, **options):
    prior = np.arange(k, 0.0, -1)
    problem = optrand.regression(np.arange(float(k)), prior / prior.sum(), epsilon, **options)
    return optrand.solve(problem)


def page_of(subject, **options):
    return report_page(subject, optrand.certify(getattr(subject, "mechanism", subject)), **options)


@pytest.fixture(scope="module")
def five():
    return solved(bias_penalty=math.inf)


@pytest.fixture(scope="module")
def page(five):
    return page_of(five, name="five.json")


@pytest.fixture
def one_picture(monkeypatch):
    """Draw one picture only, for tests of the rest of a page."""
    monkeypatch.setattr(report, "DRAWINGS", dict(list(DRAWINGS.items())[:1]))


class Outline(HTMLParser):
    """Every tag with its attributes, and the words between them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words.append(data)

    def all(self, name):
        return [attributes for tag, attributes in self.tags if tag == name]


def test_the_page_has_a_language_a_title_and_headings_in_order_and_references_lead_somewhere(page, five):
    outline = Outline(page)
    assert outline.all("html") == [{"lang": "en"}]
    assert page.count("<title>") == page.count("<title>A mechanism for 5 labels at ε = 1</title>") == 1
    levels = [int(tag[1]) for tag, _ in outline.tags if tag in ("h1", "h2", "h3")]
    assert levels == [1, 2, 2, 2, 2] + [3] * len(DRAWINGS)
    text = " ".join(" ".join(outline.words).split())
    for part in ("Certificate", "Budget", "Labels", "Pictures", five.digest, "optrand verify five.json"):
        assert part in text
    ids = [attributes["id"] for _, attributes in outline.tags if "id" in attributes]
    assert len(set(ids)) == len(ids)
    named = {attributes["aria-labelledby"] for _, attributes in outline.tags if "aria-labelledby" in attributes}
    assert named
    assert named <= set(ids)


@pytest.mark.usefixtures("one_picture")
def test_the_page_says_how_far_odds_change_and_what_was_spent(five, page):
    told = odds(five)
    assert f"by a factor of at most {told['factor']}. A probability of one half becomes at most {told['most']}" in page
    assert "This is the budget of the mechanism alone." in page
    _, record = optrand.randomize([0, 1, 2] * 20, 1.05, labels=range(3))
    release = page_of(record)
    assert "With the prior the release has spent 1.05 nats in all." in release
    assert "budget of the mechanism alone" not in release


def test_every_picture_is_in_the_page_and_has_a_description(page):
    described = re.findall(r'<h3 id="(\w+)">(.+?)</h3>.*?<figcaption>(.+?)</figcaption>', page, re.DOTALL)
    assert [name for name, *_ in described] == list(DRAWINGS)
    for (_, heading, meaning), picture in zip(described, Outline(page).all("img"), strict=True):
        assert picture["alt"].startswith(f"{html.unescape(heading)}: ")
        assert picture["alt"].endswith(f". {html.unescape(meaning)}")
        kind, _, data = picture["src"].partition(",")
        assert kind == "data:image/svg+xml;base64"
        svg = base64.b64decode(data, validate=True).decode()
        assert "<path" in svg
        assert not re.search(r"<script|<image[^>]*href=.(?!data:|#)", svg)


def test_the_page_refers_to_nothing_outside_itself_and_runs_nothing(page):
    outline = Outline(page)
    assert not {"script", "link", "iframe", "object", "embed"} & {tag for tag, _ in outline.tags}
    for tag, attributes in outline.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "href"], tag
        assert attributes.get("src", "data:").startswith("data:")
    assert set(re.findall(r"\bhttps?://[^\s\"'<)]*", page)) == set()
    (policy,) = [meta["content"] for meta in outline.all("meta") if "http-equiv" in meta]
    assert policy.startswith("default-src 'none'")


@pytest.mark.usefixtures("one_picture")
def test_the_page_of_a_release_has_the_names_of_its_classes():
    _, record = optrand.randomize(["yes", "no", "yes"], 1.0, labels=["yes", "no"])
    page = page_of(record)
    (picture,) = Outline(page).all("img")
    assert "Classes yes, no" in picture["alt"]
    assert [row[0] for row in label_numbers(record.mechanism, ["yes", "no"]).rows] == ["yes", "no"]
    assert ">yes<" in page


def test_names_of_groups_are_text():
    table = optrand.rr([0, 1], 1.0)
    text = group_report_page({"<script>alert(1)</script>": table, "a & b": table}, BudgetSplit(0.05, 1.0))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


@pytest.mark.usefixtures("one_picture")
def test_equal_mechanisms_give_equal_pages_and_names_of_files_are_text(five):
    """To the page a name is text, and to a shell one word."""
    plain = page_of(five, name="five.json")
    for name, shown in (
        ("<b> & me.json", "&#39;&lt;b&gt; &amp; me.json&#39;"),
        ("bad\udcff.json", "&#39;bad?.json&#39;"),
    ):
        text = page_of(five, name=name)
        assert text.encode()
        assert text == plain.replace("five.json", shown)
        assert f"optrand verify {shown}\npython -m optrand.checker {shown}<" in text


def test_the_certificate_is_the_one_that_is_proven(five):
    proof = optrand.certify(five)
    facts = dict(certificate_facts(five, proof))
    _, low, _, high = facts["Optimal value"].split()
    assert (float(low), float(high)) == (proof.lower, proof.upper)
    assert Fraction(low) <= Fraction(proof.lower)
    assert Fraction(high) >= Fraction(proof.upper)
    assert read_number(facts["Gap"].split()[2]) >= proof.gap
    assert read_number(facts["Largest bias"].removeprefix("at most ").split(",")[0]) >= proof.bias
    assert facts["Objective"] == "half the mean squared error, of all mechanisms without bias"
    assert facts["Arithmetic"].startswith("exact")
    assert facts["Digest"] == five.digest
    proven, sentence = verdict(proof)
    assert proven
    assert read_number(sentence.split()[-1].rstrip(".")) >= proof.gap


def test_the_objective_is_in_words():
    for options, expected in (
        ({"bias_penalty": 0.0}, "half the mean squared error"),
        ({"bias_penalty": 3.0}, "half the mean squared error, and 1.5 times the mean squared bias"),
        ({"loss": optrand.losses.absolute}, "the mean absolute error"),
    ):
        mechanism = solved(3, **options)
        proof = optrand.certify(mechanism)
        assert dict(certificate_facts(mechanism, proof))["Objective"] == expected


@pytest.mark.parametrize("epsilon", [0.01, 700.0])
def test_the_budget_is_never_understated(epsilon):
    mechanism = optrand.debiased_rr([0, 1], epsilon)
    facts = dict(budget_facts(mechanism))
    assert Fraction(facts["Largest ratio"].split(",")[0]) >= mechanism.realised_ratio
    assert float(facts["ε realised"].split()[0]) >= mechanism.realised_epsilon
    found = odds(mechanism)
    assert Fraction(read_number(found["factor"])) >= mechanism.realised_ratio
    most, least = (float(found[name].rstrip("%")) / 100 for name in ("most", "least"))
    ratio = float(mechanism.realised_ratio)
    assert ratio / (1 + ratio) <= most <= ratio / (1 + ratio) + 2e-3
    assert most + least == pytest.approx(1)


def test_odds_just_above_a_round_number_are_not_rounded_down():
    most = Fraction(3) + Fraction(1, 2**80)
    problem = optrand.unbiased_regression([0, 1], [0.5, 0.5], 1.5)
    table = np.array([[most.numerator, most.denominator], [most.denominator, most.numerator]], dtype=object)
    found = odds(mechanism_of(problem, None, np.array([-0.5, 1.5]), table, most))
    assert found == {"factor": "3.001", "most": "75.1%", "least": "24.9%"}


def test_labels_are_listed_with_their_prior_mean_and_deviation(five):
    numbers = label_numbers(five)
    rows = numbers.rows
    assert numbers.headings == ["Label", "Prior", "Mean output", "Standard deviation"]
    assert [row[0] for row in rows] == [row[2] for row in rows] == ["0", "1", "2", "3", "4"]
    assert [float(row[1]) for row in rows] == pytest.approx([5 / 15, 4 / 15, 3 / 15, 2 / 15, 1 / 15], rel=1e-3)
    assert [float(row[3]) for row in rows] == pytest.approx(np.sqrt(five.randomizer.variances), rel=1e-5)


def test_means_of_labels_far_from_zero_can_be_told_apart():
    problem = optrand.unbiased_regression([1e9, 1e9 + 1, 1e9 + 5], [0.2, 0.3, 0.5], 1.0)
    rows = label_numbers(optrand.solve(problem)).rows
    assert [row[0] for row in rows] == [row[2] for row in rows] == ["1000000000", "1000000001", "1000000005"]


def test_classes_have_no_mean_and_no_joint_picture():
    mechanism = optrand.rr_with_prior([0.5, 0.3, 0.2], 1.0)
    numbers = label_numbers(mechanism)
    assert numbers.headings == ["Label", "Prior", "Kept with probability"]
    # Two labels are kept, each with e / (e + 1), and the third never.
    assert [row[2] for row in numbers.rows] == ["0.7311", "0.7311", "0"]
    page = page_of(mechanism)
    assert "Largest bias" not in page
    assert "<p>Not drawn: classes have no distance" in page
    assert len(Outline(page).all("img")) == len(DRAWINGS) - page.count("<p>Not drawn: ") >= 3


@pytest.fixture
def biased(five):
    """A private mechanism that does not answer its question: one output for all is not unbiased."""
    return mechanism_of(five.problem, None, [0.0, 1.0], [[2, 1], [1, 2], [1, 2], [1, 2], [1, 2]], Fraction(2))


def test_a_page_without_a_proof_says_so(five, page, monkeypatch):
    monkeypatch.setattr(report, "DRAWINGS", {name: DRAWINGS[name] for name in ("pmf", "dual")})
    text = page_of(Mechanism(five.problem, five.table))
    assert 'class="verdict doubt"' in text
    assert "Its distance from the optimum was not proven" in text
    assert "no range was proven" in text
    assert "Not drawn: there is no dual" in text
    assert 'class="verdict doubt"' not in page


@pytest.mark.usefixtures("one_picture")
def test_report_writes_the_page_and_keeps_what_exists(five, tmp_path):
    saved, target = tmp_path / "five.json", tmp_path / "five.html"
    five.save(saved)
    target.write_text("mine")
    invoke("plot", saved, "-o", target, code=WRONG_INPUT)
    assert target.read_text() == "mine"
    result = invoke("plot", saved, "-o", target, "--force", code=0)
    assert result.stdout.startswith(f"page  {target}\nverified, gap ")
    assert target.read_text(encoding="utf-8") == page_of(five, name="five.json")


@pytest.mark.usefixtures("one_picture")
def test_report_of_what_is_no_answer_is_written_and_ends_with_its_own_code(biased, tmp_path):
    biased.save(tmp_path / "m.json")
    result = invoke("plot", tmp_path / "m.json", "-o", tmp_path / "m.html", code=UNVERIFIED)
    # A drawing that takes ten seconds reports it.
    assert [line for line in result.stderr.splitlines() if not line.startswith("drawing")] == [
        "error: biased by up to 3.34 where no bias is allowed"
    ]
    text = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert 'class="verdict doubt">Not certified: ' in text


# A real browser
def browse(path, width=1000, height=800):
    """Open a page without a screen. Return its document as parsed, the complaints of the console, and its pixels."""
    shot = path.with_suffix(".png")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    options += ["--hide-scrollbars", f"--window-size={width},{height}", f"--user-data-dir={path.parent / 'profile'}"]
    options += ["--enable-logging=stderr", "--dump-dom", f"--screenshot={shot}", path.as_uri()]
    told = subprocess.run([CHROMIUM, *options], capture_output=True, text=True, check=True, timeout=120)
    complaints = [line for line in told.stderr.splitlines() if ":CONSOLE" in line]
    return told.stdout, complaints, matplotlib.image.imread(shot)[..., :3]


@pytest.fixture(scope="module")
def weeks():
    """The page of 53 labels."""
    return page_of(solved(53, bias_penalty=math.inf))


@needs_chromium
def test_a_browser_parses_the_page_as_it_was_written_and_has_nothing_to_complain_about(weeks, tmp_path):
    path = tmp_path / "weeks.html"
    path.write_text(weeks, encoding="utf-8")
    document, complaints, _ = browse(path)
    assert complaints == []
    assert document.startswith("<!DOCTYPE html>")
    assert "14 of 53 labels, evenly spread" in document
    # An element that a parser moves to mend a page would not be where it was written.
    assert Outline(document).tags == Outline(weeks).tags


@needs_chromium
def test_a_browser_neither_fetches_nor_runs_anything(page, tmp_path):
    path, more = tmp_path / "more.html", '<img src="other.png" alt=""><script>document.title = 1</script>'
    path.write_text(page.replace("<main>", f"<main>{more}"), encoding="utf-8")
    document, complaints, _ = browse(path)
    assert ["Content Security Policy" in line for line in complaints] == [True, True]
    assert "<title>A mechanism for 5 labels at ε = 1</title>" in document


MEASURE = """<script>
const box = (image) => {
  const place = image.getBoundingClientRect();
  return [place.x, place.y, place.width, place.height].map(Math.round);
};
addEventListener("load", () => {
  document.body.style.width = "360px";
  document.title = JSON.stringify([document.body.scrollWidth, [...document.images].map(box)])
});
</script>"""
"""Narrows a page, as a window of a browser without a screen cannot be, and puts its width and places of its pictures
into its title."""


@needs_chromium
def test_the_page_fits_a_narrow_screen_and_every_picture_is_drawn(weeks, tmp_path):
    width, path = 360, tmp_path / "narrow.html"
    path.write_text(re.sub("<meta http-equiv[^>]*>", MEASURE, weeks), encoding="utf-8")
    document, _, pixels = browse(path, height=10_000)
    scrolled, boxes = json.loads(html.unescape(re.search("<title>(.*)</title>", document)[1]))
    assert scrolled <= width
    assert len(boxes) == len(DRAWINGS)
    for x, y, across, down in boxes:
        assert 0.7 * width - 48 < across <= width
        shown = pixels[y : y + down, x : x + across].min(axis=2)
        ink = (shown < 0.5).any(axis=1)
        # Something dark from the top to the bottom of the picture, and white paper around it.
        assert ink[: len(ink) // 4].any()
        assert ink[-len(ink) // 4 :].any()
        assert (shown > 0.99).mean() > 0.1
