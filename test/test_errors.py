# SPDX-License-Identifier: Apache-2.0
"""The parts of messages: one printable line, and not a long one."""

from __future__ import annotations

import pytest

from robot_dynamics.errors import (
    LONGEST,
    DescriptionError,
    InputError,
    Place,
    RobotDynamicsError,
    choices,
    counted,
    listed,
    one_line,
    shown,
    wrong,
)

HOSTILE = "a\n\x1b[2J\x9b31m\u202e\u2028\x00\udc9b\r\tb"


def test_what_cannot_be_printed_is_escaped_and_the_rest_stays():
    assert one_line("τ = 5 N·m…\n  at last") == "τ = 5 N·m… at last"
    assert one_line(HOSTILE) == r"a \x1b[2J\x9b31m\u202e \x00\udc9b b"


@pytest.mark.parametrize("length", [499, 500, 501, 999, 1000, 1001, 10**6])
def test_a_line_has_at_most_so_many_characters_and_tells_how_many_there_were(length):
    text = "x" * length
    line = one_line(text, 500)
    assert len(line) <= 500
    assert (line == text) == (length <= 500)
    assert line == text or f"({length} characters)" in line


def test_escapes_do_not_make_a_line_longer_than_allowed():
    assert len(one_line("\x9b" * 400, 500)) <= 500
    assert one_line(" " * 5000, 500).endswith("(5000 characters)")


@pytest.mark.parametrize(("count", "words"), [(0, "0 joints"), (1, "1 joint"), (2, "2 joints")])
def test_one_is_not_counted_in_the_plural(count, words):
    assert counted(count, "joint") == words


def test_a_list_is_told_to_a_bound_and_the_rest_counted():
    assert listed(["a", "b"]) == "a, b"
    assert listed([]) == "none"
    assert listed("abc", 3) == "a, b, c"
    assert listed("abcd", 3) == "a, b, c and 1 more"
    assert len(listed(["n" * 10**6] * 100_000)) < 20 * 102 + 20
    assert choices(["a", "b"]) == "one of a, b"


def test_a_value_is_shown_shortly_whatever_it_is():
    class Rude:
        def __repr__(self):
            raise RuntimeError

    assert shown([1.5, "a"]) == "[1.5, 'a']"
    for value in ("x" * 10**6, list(range(10**6)), {"x" * 10**6: 1}, Rude(), 10**5000):
        assert len(shown(value)) < 500


def test_every_error_is_one_short_printable_line_and_keeps_its_value():
    error = wrong(InputError, f"joint {HOSTILE}", [HOSTILE] * 1000, choices([HOSTILE] * 1000))
    assert str(error).isprintable()
    assert len(str(error)) <= LONGEST
    assert error.value == [HOSTILE] * 1000
    assert str(RobotDynamicsError("a\nb")) == "a b"


def test_a_line_is_found_by_the_place_that_an_error_carries_whatever_its_sentence_says(tmp_path):
    from robot_dynamics.description.lines import located

    file = tmp_path / "arm.yaml"
    file.write_text(
        "robot: arm\nlinks:\n  - name: upper\n    mass: 1\n    inertia:\n      ixx: 1\n"
    )
    arm = Place("arm.yaml")
    for place, line in (
        (arm.named("link", "upper") / "mass", 4),
        (arm / "links" / 0 / "inertia" / "ixx", 6),
        (arm / "robot", 1),
        (arm.at("links", 0, "mass") + ": of the robot", 4),
    ):
        error = DescriptionError("a joint's mass, name or robot is odd", name=place)
        assert str(located(error, file)).endswith(f"is odd (line {line})")
    nowhere = DescriptionError("arm.yaml: link 'upper': mass: odd", name="arm.yaml: robot")
    assert "line" not in str(located(nowhere, file))
