"""Laws of the cache: what is in it is right, private, and never needed."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import robot_dynamics as rd
from robot_dynamics.codegen import Function, Kernel, cache, compiler
from robot_dynamics.scalar import sin

ROOT = Path(__file__).resolve().parents[1]

needs_two_users = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
BACKENDS = ["c", "python"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty cache of our own; every complaint is made anew."""
    place = tmp_path / "kernels"
    monkeypatch.setenv(cache.VARIABLE, str(place))
    cache._warn_once.cache_clear()
    return place


@pytest.fixture(params=BACKENDS)
def backend(request):
    if request.param == "c":
        try:
            compiler.find()
        except rd.RobotDynamicsError as error:
            pytest.skip(str(error))
    return request.param


def double(backend, factor=2.0):
    """sin(factor·x) as a kernel, run at 0.5."""
    function = Function(
        "double", ("x",), (1,), (1,), 0, lambda x, p: [sin(factor * x[0])], factor, "robot \x1b["
    )
    return float(Kernel(function, (), backend)(np.array([0.5]))[0])


def nothing_is_built(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was built")

    monkeypatch.setattr(Function, "record", refuse)
    monkeypatch.setattr(compiler.Compiler, "shared_library", refuse)


def test_the_second_time_nothing_is_recorded_or_compiled(backend, monkeypatch):
    first = double(backend)
    nothing_is_built(monkeypatch)
    assert double(backend) == first


def test_another_content_is_another_kernel(backend):
    assert double(backend, 2.0) == pytest.approx(np.sin(1.0))
    assert double(backend, 3.0) == pytest.approx(np.sin(1.5))


def test_the_cache_is_private(place, backend):
    double(backend)
    assert place.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o077 == 0 for file in place.iterdir())


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_what_is_damaged_is_built_again_with_a_warning(place, backend, damage):
    double(backend)
    for file in place.iterdir():
        content = file.read_bytes()
        cut = {"cut": content[: len(content) // 2], "empty": b""}
        # written anew: the old file may be mapped into this process
        file.unlink()
        file.write_bytes(cut.get(damage, content[:100] + b"x" + content[101:]))
        file.chmod(0o600)
    with pytest.warns(cache.CacheWarning, match="damaged; it is built again"):
        assert double(backend) == pytest.approx(np.sin(1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double(backend)


def test_a_cache_that_others_can_write_to_is_not_used(place, backend):
    place.mkdir()
    place.chmod(0o777)
    with pytest.warns(cache.CacheWarning, match="others can write to it"):
        assert double(backend) == pytest.approx(np.sin(1.0))
    assert list(place.iterdir()) == []


def test_a_cache_below_a_directory_that_others_can_write_to_is_not_used(
    tmp_path, monkeypatch, backend
):
    above = tmp_path / "open"
    above.mkdir()
    above.chmod(0o777)
    monkeypatch.setenv(cache.VARIABLE, str(above / "kernels"))
    with pytest.warns(cache.CacheWarning, match="others can replace it through"):
        double(backend)


def test_a_file_that_others_can_write_to_is_not_loaded(place, backend, monkeypatch):
    double(backend)
    for file in place.iterdir():
        file.chmod(0o666)
    built = []
    record = Function.record
    monkeypatch.setattr(Function, "record", lambda *a: built.append(a) or record(*a))
    double(backend)
    assert built


def test_a_link_in_the_cache_is_not_followed(place, backend, tmp_path, monkeypatch):
    double(backend)
    for file in list(place.iterdir()):
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    built = []
    record = Function.record
    monkeypatch.setattr(Function, "record", lambda *a: built.append(a) or record(*a))
    double(backend)
    assert built


@needs_two_users
def test_another_users_cache_is_not_used(place, backend):
    place.mkdir(mode=0o700)
    os.chown(place, 12345, 12345)
    with pytest.warns(cache.CacheWarning, match="belongs to another user"):
        double(backend)


def test_a_cache_that_cannot_be_made_is_done_without(tmp_path, monkeypatch, backend):
    (tmp_path / "file").write_text("not a directory")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file" / "kernels"))
    with pytest.warns(cache.CacheWarning, match="is not used"):
        assert double(backend) == pytest.approx(np.sin(1.0))


def test_a_cache_that_is_full_is_done_without(monkeypatch, backend):
    def full(*_):
        raise OSError(28, "No space left on device")

    written = cache._written
    monkeypatch.setattr(
        cache,
        "_written",
        lambda place, *rest: full() if place == cache.directory() else written(place, *rest),
    )
    with pytest.warns(cache.CacheWarning, match="No space left"):
        assert double(backend) == pytest.approx(np.sin(1.0))


def test_processes_that_build_at_once_all_get_it_right(place):
    code = (
        "import sys; sys.path.insert(0, 'test'); import test_codegen_cache as t; "
        "print(t.double('auto'))"
    )
    environment = {**os.environ, cache.VARIABLE: str(place)}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    found = [float(process.communicate()[0]) for process in started]
    assert found == [pytest.approx(np.sin(1.0))] * 4
    assert not [file for file in place.iterdir() if file.name.startswith(".")]
    assert all(entry.about for entry in cache.entries())


def test_the_listing_tells_what_is_there_and_clear_removes_it(place, backend):
    double(backend)
    listed = cache.listing()
    assert listed["directory"] == str(place)
    assert any(entry.get("what", "").startswith("double") for entry in listed["entries"])
    assert "\x1b" not in listed["text"]
    (place / ".new-abandoned").write_text("by a process that was killed")
    assert cache.clear()["removed"] == len(listed["entries"]) + 1
    assert list(place.iterdir()) == []
    assert cache.listing()["entries"] == []


def test_listing_and_clearing_an_empty_cache_is_no_failure():
    assert cache.listing()["entries"] == []
    assert cache.clear()["removed"] == 0


def test_the_oldest_files_make_room(place, backend, monkeypatch):
    double(backend, 2.0)
    for file in place.iterdir():
        os.utime(file, (1, 1))
    old = set(place.iterdir())
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    double(backend, 3.0)
    assert not old & set(place.iterdir())
    assert double(backend, 3.0) == pytest.approx(np.sin(1.5))


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.directory() == tmp_path / "robot_dynamics"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache.directory() == tmp_path / "home" / ".cache" / "robot_dynamics"
