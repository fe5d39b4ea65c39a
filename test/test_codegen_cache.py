# SPDX-License-Identifier: Apache-2.0
"""Laws of the cache: what it contains is correct, private, and never required."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

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
    monkeypatch.setattr(cache, "_growth", cache._Growth())
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


def same_files(factor, content):
    """A kernel in C with the same C files whatever its content is."""
    function = Function("same", ("x",), (1,), (1,), 0, lambda x, p: [factor * x[0]], content)
    return float(Kernel(function, (), "c")(np.array([0.5]))[0])


def test_the_same_c_files_are_compiled_once(place, monkeypatch):
    compiled, original = [], compiler.Compiler.shared_library
    monkeypatch.setattr(
        compiler.Compiler,
        "shared_library",
        lambda *arguments: compiled.append(arguments) or original(*arguments),
    )
    assert [same_files(7.25, content) for content in (1, 2, 3)] == [3.625] * 3
    assert len(compiled) == 1
    assert len({path.name for path in place.iterdir()}) == len(list(place.glob("*.so"))) == 3
    assert same_files(-7.25, 4) == -3.625
    assert len(compiled) == 2
    # another compiler builds its own, and what is no longer there is built again
    found = compiler.find()
    other = compiler.Compiler(found.command, found.identity + " other")
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "find", lambda: other)
        assert same_files(7.25, 5) == 3.625
    assert len(compiled) == 3
    cache.clear()
    assert same_files(7.25, 6) == 3.625
    assert len(compiled) == 4


def test_a_damaged_twin_is_not_taken(place):
    assert same_files(8.25, 1) == 4.125
    (path,) = place.glob("*.so")
    damaged = path.read_bytes()[:-100]
    path.unlink()  # not in its place: the kernel may still be loaded
    path.write_bytes(damaged)
    path.chmod(0o600)
    with pytest.warns(cache.CacheWarning, match="damaged"):
        assert same_files(8.25, 2) == 4.125


def test_a_cache_is_made_with_all_that_leads_to_it(place, monkeypatch):
    deep = place / "a" / "b"
    monkeypatch.setenv(cache.VARIABLE, str(deep))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double("python")
    assert len(cache.entries()) == len(list(deep.iterdir())) == 1


@pytest.mark.parametrize("error", [OSError(28, "full"), KeyboardInterrupt()])
def test_what_is_not_written_to_its_end_leaves_nothing_behind(error, place, monkeypatch):
    def fails(*_):
        raise error

    place.mkdir(mode=0o700)
    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(type(error)):
        cache._written(place, "kernel.so", b"half")
    assert not list(place.iterdir())


def test_the_cache_is_private(place, backend):
    double(backend)
    assert place.stat().st_mode & 0o777 == 0o700
    assert all(file.stat().st_mode & 0o077 == 0 for file in place.iterdir())


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "mark"])
def test_what_is_damaged_is_built_again_with_a_warning(place, backend, damage):
    double(backend)
    for file in place.iterdir():
        content = file.read_bytes()
        mark = content[:-66] + b" #" + content[-64:]
        cut = {"cut": content[: len(content) // 2], "empty": b"", "mark": mark}
        # written anew: the old file may be mapped into this process
        file.unlink()
        file.write_bytes(cut.get(damage, content[:100] + b"x" + content[101:]))
        file.chmod(0o600)
    with pytest.warns(cache.CacheWarning, match="damaged; rebuilding it"):
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


@pytest.mark.parametrize("name", ["shared/inside/..", "link"])
def test_a_directory_that_all_share_is_not_used_whatever_name_it_goes_by(
    tmp_path, monkeypatch, name
):
    shared = tmp_path / "shared"
    (shared / "inside").mkdir(parents=True)
    shared.chmod(0o1777)
    (tmp_path / "link").symlink_to("shared/inside/..")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / name))
    with pytest.warns(cache.CacheWarning, match="others can write to it"):
        cache.store("0" * 64, ".py", b"", {})
    assert [each.name for each in shared.iterdir()] == ["inside"]


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
    monkeypatch.setattr(Function, "record", lambda *a, **k: built.append(a) or record(*a, **k))
    double(backend)
    assert built


def test_a_link_in_the_cache_is_not_followed(place, backend, tmp_path, monkeypatch):
    double(backend)
    for file in list(place.iterdir()):
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    built = []
    record = Function.record
    monkeypatch.setattr(Function, "record", lambda *a, **k: built.append(a) or record(*a, **k))
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


def test_what_is_no_folder_is_told_so_and_nobody_is_asked_to_change_its_mode(monkeypatch, backend):
    monkeypatch.setenv(cache.VARIABLE, os.devnull)
    with pytest.warns(cache.CacheWarning, match="null is not used: it is not a folder"):
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
    one = next(place.iterdir())
    (place / f".{one.name}.abandoned").write_text("by a process that was killed")
    assert cache.clear()["removed"] == len(listed["entries"]) + 1
    assert list(place.iterdir()) == []
    assert cache.listing()["entries"] == []


def test_the_listing_begins_with_the_newest(place, monkeypatch):
    for made in (2.0, 3.0, 1.0):
        monkeypatch.setattr(cache, "time", SimpleNamespace(time=lambda made=made: made))
        cache.store(f"{int(made):064x}", ".py", b"", {})
    assert [entry.about["made"] for entry in cache.entries()] == [3.0, 2.0, 1.0]


def test_listing_and_clearing_an_empty_cache_is_no_failure():
    assert cache.listing()["entries"] == []
    assert cache.clear()["removed"] == 0


def test_what_is_not_known_as_ours_stays(place, backend, monkeypatch):
    double(backend)
    ours = set(place.iterdir())
    name = "robot_dynamics-" + "0" * 64
    foreign = {
        "mine.py": b"print('mine')",
        "library.so": b"",
        "0" * 64 + ".so": b"somebody else's store",
        name + ".so": b"the right name alone",
        name + ".txt": b"",
        name[:-1] + ".py": b"",
        "." + name + ".so": b"",
        ".new-notes": b"",
        "backup " + next(iter(ours)).name: next(iter(ours)).read_bytes(),
        next(iter(ours)).name + "~": next(iter(ours)).read_bytes(),
    }
    for file, content in foreign.items():
        (place / file).write_bytes(content)
        (place / file).chmod(0o600)
        os.utime(place / file, (1, 1))
    (place / ("robot_dynamics-" + "1" * 64 + ".so")).mkdir()
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    double(backend, 3.0)  # makes room
    assert not ours & set(place.iterdir())
    assert cache.clear()["removed"] > 0
    left = {file.name for file in place.iterdir()}
    assert left == {*foreign, "robot_dynamics-" + "1" * 64 + ".so"}
    for file, content in foreign.items():
        assert (place / file).read_bytes() == content


def kept(place, count, size):
    """`count` files of `size` bytes each, last used one second after another, first to last."""
    paths = [cache.store(f"{k:064x}", ".py", b" " * size, {"what": str(k)}) for k in range(count)]
    for k, path in enumerate(paths):
        os.utime(path, (1000 + count - k, 1000 + k))  # atime the other way round: it means nothing
    return paths


def test_what_was_used_longest_ago_makes_room_and_no_more_than_needed(place, monkeypatch):
    monkeypatch.setattr(cache, "time", SimpleNamespace(time=lambda: 1.5))  # files of one size
    paths = kept(place, 5, 1000)
    size = paths[0].stat().st_size
    cache.fetch("0" * 64, ".py")  # the first one is used again
    monkeypatch.setattr(cache, "MOST_BYTES", 4 * size)
    newest = cache.store("f" * 64, ".py", b" " * 1000, {"what": "0"})
    assert [path.exists() for path in paths] == [True, False, False, True, True]
    assert newest.exists()
    monkeypatch.setattr(cache, "MOST_BYTES", 4 * size - 1)
    os.utime(newest, (1, 1))
    assert cache.store("f" * 64, ".py", b" " * 1000, {"what": "0"}) == newest
    assert [path.exists() for path in paths] == [True, False, False, False, True]
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    cache.store("f" * 64, ".py", b" " * 1000, {"what": "0"})
    assert list(place.iterdir()) == [newest]


def test_a_large_cache_is_not_looked_through_each_time_and_keeps_to_its_size_all_the_same(
    place, monkeypatch
):
    looked, original = [], cache._make_room
    monkeypatch.setattr(cache, "MOST_BYTES", 200_000)
    monkeypatch.setattr(cache, "_make_room", lambda path: looked.append(original(path)))
    for k in range(300):
        cache.store(f"{k:064x}", ".py", b" " * 1000, {"what": str(k)})
    # every hundredth of the size, and each file is a little more than half of that
    assert 140 <= len(looked) <= 160
    assert sum(path.stat().st_size for path in place.iterdir()) <= 1.01 * 200_000


def test_a_process_that_stores_little_makes_room_too(place, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 200_000)
    # by processes that looked before there was too much
    monkeypatch.setattr(cache, "_growth", SimpleNamespace(add=lambda *_: None))
    for k in range(60):
        cache.store(f"{k:064x}", ".py", b" " * 5000, {"what": str(k)})
    monkeypatch.setattr(cache, "_growth", cache._Growth())
    cache.store("f" * 64, ".py", b" ", {"what": "little"})
    assert sum(path.stat().st_size for path in place.iterdir()) <= 200_000


def test_a_cache_within_its_bounds_loses_nothing(place, monkeypatch):
    monkeypatch.setattr(cache, "time", SimpleNamespace(time=lambda: 1.5))
    paths = kept(place, 3, 100)
    size = paths[0].stat().st_size
    monkeypatch.setattr(cache, "MOST_BYTES", 4 * size)
    cache.store("f" * 64, ".py", b" " * 100, {"what": "0"})
    assert all(path.exists() for path in paths)


@pytest.mark.parametrize("target", ["sound", "missing"])
def test_a_cache_behind_a_link_that_others_can_replace_is_not_used(tmp_path, monkeypatch, target):
    (tmp_path / "sound").mkdir(mode=0o700)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "link").symlink_to(tmp_path / target)
    for place in (tmp_path / "open" / "link", tmp_path / "open" / "link" / "kernels"):
        monkeypatch.setenv(cache.VARIABLE, str(place))
        with pytest.warns(cache.CacheWarning, match=r"others can replace it through .*open"):
            cache.store("0" * 64, ".py", b"", {})
    assert not (tmp_path / "missing").exists()
    assert list((tmp_path / "sound").iterdir()) == []


def test_a_cache_behind_ones_own_links_is_used(tmp_path, monkeypatch):
    (tmp_path / "sound").mkdir(mode=0o700)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two").symlink_to("../sound")
    (tmp_path / "one").symlink_to(tmp_path / "b" / "two")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "one" / "kernels"))
    cache.store("0" * 64, ".py", b"", {})
    assert len(list((tmp_path / "sound" / "kernels").iterdir())) == 1
    assert cache.fetch("0" * 64, ".py") is not None


def test_links_in_a_circle_are_done_without(tmp_path, monkeypatch):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "a" / "kernels"))
    assert cache.fetch("0" * 64, ".py") is None
    with pytest.warns(cache.CacheWarning, match="is not used"):
        cache.store("0" * 64, ".py", b"", {})


@needs_two_users
def test_another_users_link_in_a_sticky_directory_is_not_followed(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (tmp_path / "sound").mkdir(mode=0o700)
    (shared / "link").symlink_to(tmp_path / "sound")
    monkeypatch.setenv(cache.VARIABLE, str(shared / "link"))
    cache.store("0" * 64, ".py", b"", {})
    assert len(list((tmp_path / "sound").iterdir())) == 1
    os.chown(shared / "link", 12345, 12345, follow_symlinks=False)
    with pytest.warns(cache.CacheWarning, match=r"through .*link"):
        cache.store("1" * 64, ".py", b"", {})


@needs_two_users
@pytest.mark.parametrize("mode", [0o755, 0o700, 0o1777])
def test_a_cache_below_another_users_directory_is_not_used(tmp_path, monkeypatch, mode):
    other = tmp_path / "other"
    (other / "kernels").mkdir(mode=0o700, parents=True)
    other.chmod(mode)
    os.chown(other, 12345, 12345)
    monkeypatch.setenv(cache.VARIABLE, str(other / "kernels"))
    with pytest.warns(cache.CacheWarning, match=r"through .*other"):
        cache.store("0" * 64, ".py", b"", {})


@needs_two_users
@pytest.mark.parametrize("mode", [0o644, 0o600])
def test_another_users_file_is_not_read(place, mode):
    path = cache.store("0" * 64, ".py", b"", {})
    assert cache.fetch("0" * 64, ".py") is not None
    os.chown(path, 12345, 12345)
    path.chmod(mode)
    assert cache.fetch("0" * 64, ".py") is None


@pytest.mark.parametrize(
    ("members", "name", "is_private"),
    [([], "me", True), (["me"], "me", True), (["me", "you"], "me", False), ([], "all", False)],
)
def test_a_group_that_is_ones_own_may_write(monkeypatch, members, name, is_private):
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    user = pwd.struct_passwd(("me", "x", os.geteuid(), 7, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: user)
    monkeypatch.setattr(grp, "getgrgid", lambda gid: grp.struct_group((name, "x", gid, members)))
    cache._is_private_group.cache_clear()
    try:
        assert cache._is_private_group(7) is is_private
    finally:
        cache._is_private_group.cache_clear()


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o702, 0o720])
def test_whoever_else_can_write_there_it_is_not_used(place, mode, monkeypatch):
    monkeypatch.setattr(cache, "_is_private_group", lambda group: False)
    place.mkdir()
    place.chmod(mode)
    with pytest.warns(cache.CacheWarning, match="others can write to it"):
        cache.store("0" * 64, ".py", b"", {})
    assert list(place.iterdir()) == []


def test_a_home_that_nobody_has_is_no_cache(monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, "~nobody-of-this-name/kernels")
    with pytest.warns(cache.CacheWarning, match="found '~nobody-of-this-name/kernels', expected"):
        assert double("python") == pytest.approx(np.sin(1.0))
    with pytest.raises(rd.RobotDynamicsError, match="expected a directory"):
        cache.listing()


def test_a_system_without_users_is_taken_as_it_is(place, monkeypatch):
    # Windows has no user numbers; its cache directory is the user's own already
    monkeypatch.delattr(os, "geteuid")
    for name in ("grp", "pwd"):
        monkeypatch.setitem(sys.modules, name, None)
    place.mkdir()
    place.chmod(0o777)
    assert double("python") == pytest.approx(np.sin(1.0))
    assert cache.listing()["entries"]


def test_no_users_by_name_is_nobody_elses_group(monkeypatch):
    for name in ("grp", "pwd"):
        monkeypatch.setitem(sys.modules, name, None)
    cache._is_private_group.cache_clear()
    assert cache._is_private_group(0) is False
    cache._is_private_group.cache_clear()


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert cache.directory() == tmp_path / "robot_dynamics"
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        assert cache.directory() == tmp_path / "home" / ".cache" / "robot_dynamics"
    monkeypatch.setenv(cache.VARIABLE, "~/kernels")
    assert cache.directory() == Path.home() / "kernels"
