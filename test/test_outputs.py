# SPDX-License-Identifier: Apache-2.0
"""A record's schema matches what it reads, from objects and from mappings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from robot_dynamics.outputs import COUNT, NULLABLE, NUMBER, TENSOR, TEXT, finite, record

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: extra `dev`")


@dataclass
class Wheel:
    """A wheel."""

    name: str
    size: float


@dataclass
class Cart:
    """A cart."""

    wheels: tuple[Wheel, ...]
    best: Wheel
    note: str | None
    shares: np.ndarray


WHEEL = record(radius=NUMBER("m").of("size"))
CART = record(
    wheels=WHEEL.by_name("by name"),
    largest=NULLABLE.of("best.size"),
    count=COUNT.of(lambda cart: len(cart.wheels)),
    note=TEXT.or_null(),
    shares=NULLABLE.listed(),
    price=NUMBER.maybe(),
)


def cart(size: float = 0.5) -> Cart:
    wheel = Wheel("left", size)
    return Cart((wheel,), wheel, None, np.array([1.0, np.nan]))


@pytest.mark.parametrize("price", [None, 3.0])
def test_what_is_read_is_as_the_schema_says(price):
    found = CART.read(cart(), price=price)
    jsonschema.validate(finite(found), CART.schema)
    assert finite(found) == {
        "wheels": {"left": {"radius": 0.5}},
        "largest": 0.5,
        "count": 1,
        "note": None,
        "shares": [1.0, None],
        **({} if price is None else {"price": price}),
    }


def test_what_was_read_is_read_again_as_it_is():
    found = CART.read(cart(np.inf), price=2.0)
    assert str(CART.read(found)) == str(found)


def test_a_value_that_is_not_there_is_an_error():
    found = CART.read(cart(), price=2.0)
    del found["count"]
    with pytest.raises(KeyError, match="count"):
        CART.read(found)
    with pytest.raises(AttributeError, match="price"):
        CART.read(cart())


def test_words_are_added_and_nothing_else_changes():
    schema = CART.schema
    assert schema["properties"]["wheels"]["description"] == "by name"
    assert CART("a cart").schema == schema | {"description": "a cart"}
    assert str(CART("a cart").read(cart(), price=1)) == str(CART.read(cart(), price=1))
    assert schema["required"] == ["wheels", "largest", "count", "note", "shares"]


def test_no_description_without_words():
    assert NUMBER().schema == {"type": "number"}


def test_a_list_has_the_further_keywords():
    schema = NUMBER.listed(minItems=2).schema
    assert schema == {"type": "array", "items": {"type": "number"}, "minItems": 2}


def test_counts_begin_at_none():
    jsonschema.validate(0, COUNT.schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(-1, COUNT.schema)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("kind", [float, np.float64, np.float32, np.array])
def test_what_json_lacks_is_null_wherever_it_stands(kind, value):
    assert finite(kind(value)) is None
    assert finite((kind(value), 1)) == [None, 1]
    assert finite({3: [kind(value)]}) == {"3": [None]}


def test_names_in_an_object_are_words():
    assert NUMBER.by_name().read({3: 1.0}) == {"3": 1.0}


def test_a_tensor_has_the_six_products_of_inertia():
    found = TENSOR.read(np.arange(9.0).reshape(3, 3))
    assert found == {"ixx": 0, "iyy": 4, "izz": 8, "ixy": 1, "ixz": 2, "iyz": 5}
