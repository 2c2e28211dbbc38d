"""Strict JSON, problems as documents, and files that are written whole or not at all."""

import copy
import errno
import json
import math
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asserting import assert_error, by_case
from hypothesis import given
from strategies import problems
from tables import resealed

import optrand
from optrand import losses
from optrand.base import _files, _strict_json
from optrand.errors import InvalidFile, InvalidInput
from optrand.losses import Loss
from optrand.mechanism._file_format import problem_document, read_problem
from optrand.mechanism._mechanism import Mechanism
from optrand.model._problem import regression


@given(problems())
def test_problems_survive_json(problem):
    text = _strict_json.canonical(problem_document(problem))
    assert read_problem(json.loads(text)) == problem


def test_a_loss_of_ones_own_cannot_be_saved():
    own = Loss("squared", losses.absolute.evaluate, losses.absolute.bracket)
    assert_error("use losses", problem_document, regression([0, 1], [0.5, 0.5], 1.0, loss=own, outputs=[0, 1, 2]))


SEALED = _strict_json.seal({"x": 1.5})


def test_white_space_and_order_are_free_and_the_digest_is_over_the_content():
    text = json.dumps(dict(reversed(SEALED.items())), indent=4)
    assert text.encode() != _strict_json.canonical(SEALED)
    assert _strict_json.unseal(text.encode(), ["x"]) == {"x": 1.5}
    assert _strict_json.unseal(text.replace("1.5", "15e-1").encode(), ["x"]) == {"x": 1.5}


def changed(**changes):
    return _strict_json.canonical({**SEALED, **changes})


@by_case(
    "data, message",
    (b"\xff\xfe{}", "not UTF-8"),
    (b"", "not JSON"),
    (b'{"format": ', "not JSON"),
    (b"\xef\xbb\xbf{}", "not JSON"),
    (b"{} {}", "not JSON"),
    *[(changed().replace(b"1.5", number), "never writes") for number in (b"NaN", b"[-Infinity]", b"1e999")],
    (b'{"x": 1.0, "y": 2.0, "x": 1.0}', "'x' is given twice"),
    (b'{"x": 1' + b"0" * 5000 + b"}", "not JSON"),
    (b"[1.0]", "not an optrand mechanism"),
    (b"null", "not an optrand mechanism"),
    (b"[" * 100_000, "too deeply"),
    (changed(format="other"), "not an optrand mechanism"),
    (changed(schema=2), "written by a newer optrand"),
    (changed(schema=0), "does not state its schema"),
    (changed(schema=True), "does not state its schema"),
    (changed(schema=1.0), "does not state its schema"),
    (changed(schema="1"), "does not state its schema"),
    (changed(y=1.0), "unknown field.* 'y'"),
    (_strict_json.canonical({name: SEALED[name] for name in ("format", "schema", "digest")}), "lacks field.* 'x'"),
    (changed(x=2.5), "digest is not that of the content"),
    (changed(digest="sha256:0"), "digest is not that of the content"),
    (changed(digest=None), "digest is not that of the content"),
)
def test_what_is_not_a_sealed_document_is_refused(data, message):
    assert_error(message, _strict_json.unseal, data, ["x"], error=InvalidFile)


COIN = optrand.debiased_rr([0.0, 1.0], 1.0)


def read_changed(change: Callable[[dict[str, Any]], None]) -> None:
    """Read the file of a mechanism in which something was changed, and which was sealed again."""
    content = copy.deepcopy(COIN._document)
    change(content)
    Mechanism.from_bytes(resealed(content).encode())


def test_numbers_are_written_in_one_way():
    Mechanism.from_bytes(resealed(COIN._document).encode())
    digits = COIN._document["columns"][0][0][1]
    wrong = [f"+{digits}", f"0{digits}", f" {digits}", f"{digits} ", f"{digits}\n", f"{digits}.0", f"{digits}e0", ""]
    wrong += [f"{digits[:-3]}_{digits[-3:]}", f"{digits[:-1]}\u0661", "9" * 1_000_000, int(digits[:9]), 1.0, True, None]
    for height in [*wrong, [digits]]:
        with pytest.raises(InvalidFile):
            read_changed(lambda content, to=height: content["columns"][0][0].__setitem__(1, to))
    for place in (-1, True, 0.0, "0", None, [0]):
        with pytest.raises(InvalidFile):
            read_changed(lambda content, to=place: content["columns"][0][0].__setitem__(0, to))
    for number in (0, -0.0, False, "0.0", None, [0.0], {}):
        with pytest.raises(InvalidFile):
            read_changed(lambda content, to=number: content["problem"]["labels"].__setitem__(0, to))


FORM = "another form|not written as save"


@by_case(
    "part, value, message",
    ("labels", [], "labels is empty"),
    ("labels", [1.0, 0.0], "labels of a Problem must increase"),
    ("labels", [-0.0, 0.0], "repeats"),
    ("labels", 1.0, "labels is a single number, expected several"),
    ("prior", [0.5, 0.25], "prior sums to 0.75"),
    ("prior", [True, 0.5], "prior holds values of type float64, expected numbers"),
    ("epsilon", -1.0, "epsilon is -1.0"),
    ("epsilon", None, "epsilon is of type NoneType"),
    ("loss", {"name": "cubic"}, FORM),
    ("loss", {"name": ["squared"]}, FORM),
    ("loss", "squared", FORM),
    ("loss", {"name": "squared", "half": True}, FORM),
    ("loss", {"name": "tabulated", "entries": [[1.0]]}, "needs outputs on a grid"),
    ("bias_penalty", "infinity", "bias_penalty is of type str"),
    ("bias_penalty", -1.0, "bias_penalty is -1.0"),
    ("outputs", {"kind": "ray"}, FORM),
    ("outputs", {"kind": "line", "low": 0.0}, FORM),
    ("outputs", {"kind": "grid", "values": [*COIN.outputs.tolist()[::-1]]}, FORM),
    ("outputs", {"kind": "grid", "values": [0.25, 0.75]}, "cannot be unbiased"),
    ("outputs", {"kind": "interval", "low": 1.0, "high": 0.0}, "is empty"),
    ("outputs", None, FORM),
)
def test_a_problem_without_meaning_is_refused(part, value, message):
    assert_error(message, read_changed, lambda content: content["problem"].__setitem__(part, value), error=InvalidFile)


def test_duals_and_numbers_without_meaning_are_refused():
    for dual, message in (
        ({"alpha": [1.0], "beta": [1.0, 2.0]}, "two vectors of one length"),
        ({"alpha": [1.0, 1.0]}, FORM),
        ({"alpha": [1.0, 1.0], "beta": [0.0, 0.0], "origin": 0.0}, FORM),
        ({"alpha": ["1.0", 1.0], "beta": [0.0, 0.0]}, FORM),
    ):
        assert_error(message, read_changed, lambda content, to=dual: content.__setitem__("dual", to), error=InvalidFile)
    assert_error("Out of range float values", _strict_json.canonical, {"x": math.nan}, error=ValueError)


# ---------------------------------------------------------------------------------------------------------------- files
def only(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_file_is_written_and_replaced_only_on_request(tmp_path):
    target = tmp_path / "a.json"
    _files.write_atomically(target, b"one")
    assert_error(r"a\.json exists", _files.write_atomically, target, b"two")
    assert target.read_bytes() == b"one"
    _files.write_atomically(target, b"two", overwrite=True)
    assert target.read_bytes() == b"two"
    assert only(tmp_path) == ["a.json"]


def test_others_may_read_what_the_umask_lets_them(tmp_path):
    before = os.umask(0o027)
    try:
        _files.write_atomically(tmp_path / "a.json", b"public")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "link to nothing"])
def test_only_plain_files_are_targets(tmp_path, kind, overwrite):
    target, real = tmp_path / "target", tmp_path / "real"
    make = {"folder": target.mkdir, "pipe": lambda: os.mkfifo(target)}.get(kind, lambda: target.symlink_to(real))
    make()
    if kind == "link":
        real.write_bytes(b"precious")
    before = only(tmp_path), target.lstat().st_mode
    with pytest.raises(InvalidInput, match="symbolic link" if "link" in kind else "a folder or a device"):
        _files.write_atomically(target, b"content", overwrite=overwrite)
    assert (only(tmp_path), target.lstat().st_mode) == before
    assert kind != "link" or real.read_bytes() == b"precious"


def test_a_file_that_appears_at_the_last_moment_is_safe(tmp_path, monkeypatch):
    target = tmp_path / "a.json"
    link = os.link

    def late(source, destination):
        target.write_bytes(b"theirs")
        link(source, destination)

    monkeypatch.setattr(os, "link", late)
    assert_error("exists", _files.write_atomically, target, b"ours")
    assert target.read_bytes() == b"theirs"
    assert only(tmp_path) == ["a.json"]


@pytest.mark.parametrize("taken", [False, True])
def test_where_there_are_no_hard_links_a_taken_name_is_safe_too(tmp_path, monkeypatch, taken):
    target = tmp_path / "a.json"

    def refused(*_):
        if taken:
            target.write_bytes(b"theirs")
        raise OSError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refused)
    if taken:
        assert_error("exists", _files.write_atomically, target, b"ours")
    else:
        _files.write_atomically(target, b"ours")
    assert target.read_bytes() == (b"theirs" if taken else b"ours")
    assert only(tmp_path) == ["a.json"]


def test_a_rename_that_fails_leaves_no_empty_file(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EPERM, "not here")

    monkeypatch.setattr(os, "link", refused)
    monkeypatch.setattr(Path, "replace", refused)
    assert_error("not here", _files.write_atomically, tmp_path / "a.json", b"ours", error=OSError)
    assert only(tmp_path) == []


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, overwrite):
    target = tmp_path / "a.json"
    if overwrite:
        target.write_bytes(b"old")

    def full(_):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert_error("no space left", _files.write_atomically, target, b"new", overwrite=overwrite, error=OSError)
    assert only(tmp_path) == (["a.json"] if overwrite else [])
    assert not overwrite or target.read_bytes() == b"old"


def test_a_killed_process_leaves_nothing_under_the_final_name(tmp_path):
    script = (
        "import os, sys; from optrand.base import _files; os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
        "_files.write_atomically(sys.argv[1], b'x' * 100_000)"
    )
    ended = subprocess.run([sys.executable, "-c", script, str(tmp_path / "a.json")], check=False)
    assert ended.returncode == -9
    assert "a.json" not in only(tmp_path)
    assert all(name.startswith(".a.json.") for name in only(tmp_path))


@pytest.mark.parametrize("error", [errno.EINVAL, errno.EIO])
def test_a_directory_that_cannot_be_flushed_is_no_failure_unless_the_disk_is(tmp_path, monkeypatch, error):
    fsync = os.fsync

    def choosy(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(error, "directory")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", choosy)
    if error == errno.EINVAL:
        _files.write_atomically(tmp_path / "a.json", b"x")
    else:
        assert_error("directory", _files.write_atomically, tmp_path / "a.json", b"x", error=OSError)
    assert only(tmp_path) == ["a.json"]
