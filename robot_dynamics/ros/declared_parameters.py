# SPDX-License-Identifier: Apache-2.0
"""Tables of parameters as ROS's: declared, described, and read back."""

from __future__ import annotations

import difflib
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..errors import shown
from .feed_forward.parameter_table import Parameter as Row
from .feed_forward.parameters import BY_NAME


def declare(
    node: Node, table: Sequence[Row], warn: Callable[[str], None], *, fixed: bool = False
) -> dict[str, Any]:
    """Declare all of them.

    Args:
        node: theirs.
        table: what is declared.
        warn: called for parameters that were set and are not in the table.
        fixed: all of them are set at the start, whatever their rows say.

    Returns:
        name to value; of an array that is not set, an empty one.

    Raises:
        ParameterException: a value of a wrong type, or outside its range.
    """
    by_name = {row.name: row for row in table}
    for row in table:
        descriptor = _descriptor(row, fixed=fixed)
        if not row.type.endswith("array"):
            node.declare_parameter(row.name, row.default, descriptor)
            continue
        # an empty array has a type once it was set with one
        descriptor.read_only = False
        node.declare_parameter(row.name, list(row.default), descriptor)
        node.set_parameters([typed(node.get_parameter(row.name), by_name)])
        node.set_descriptor(row.name, _descriptor(row, fixed=fixed))
    known = {*by_name, "use_sim_time", "start_type_description_service"}
    for name in node._parameter_overrides:
        if name not in known and not name.startswith("qos_overrides."):
            near = difflib.get_close_matches(name, by_name, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            warn(f"unknown parameter {shown(name)}{hint}")
    return {name: node.get_parameter(name).value for name in by_name}


def values(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Name to value, of those that are in the table."""
    return {each.name: each.value for each in parameters if each.name in BY_NAME}


def typed(parameter: Parameter, table: Mapping[str, Row] = BY_NAME) -> Parameter:
    """An array that is empty, or of whole numbers, as one of the table's type."""
    row = table.get(parameter.name)
    if row is None or not row.type.endswith("array"):
        return parameter
    value = [] if parameter.value is None else parameter.value
    if not len(value) or isinstance(value, (list, array)):
        value = list(value)
        if row.type == "double_array" and all(type(each) is int for each in value):
            value = [float(each) for each in value]
        try:
            return Parameter(row.name, _ARRAYS[row.type], value)
        except ValueError:
            pass  # of something else: the table says so
    return parameter


def _descriptor(row: Row, *, fixed: bool) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=row.meaning + (f" [{row.unit}]" if row.unit else ""),
        additional_constraints=row.range,
        read_only=row.read_only or fixed,
        # to ROS an empty array is one of bytes, [4, 100] one of integers: the table checks them
        dynamic_typing=row.type.endswith("array"),
    )
    if row.type == "double":
        upper = min(row.maximum, sys.float_info.max)
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=row.minimum, to_value=upper)
        ]
    elif row.type == "integer":
        descriptor.integer_range = [
            IntegerRange(from_value=int(row.minimum), to_value=int(row.maximum))
        ]
    return descriptor


_ARRAYS = {
    "string_array": Parameter.Type.STRING_ARRAY,
    "double_array": Parameter.Type.DOUBLE_ARRAY,
}
