# SPDX-License-Identifier: Apache-2.0
"""Declares the parameters of a table in ROS, with descriptions, and reads their values."""

from __future__ import annotations

import difflib
import sys
from array import array
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..errors import shown
from .feed_forward.parameter_table import Parameter as Row
from .feed_forward.parameter_table import checked, rows
from .feed_forward.parameters import BY_NAME
from .parameter_files import check_parameter_files

T = TypeVar("T")


def declare(node: Node, table: type[T], warn: Callable[[str], None], *, fixed: bool = False) -> T:
    """Declare all parameters of a table, and return their values, checked.

    Args:
        node: the node whose parameters they are.
        table: the dataclass whose rows they are.
        warn: called for parameters that were set but are not in the table, and for a parameter file
            that is probably meant for this node, but has another name.
        fixed: can all of them be set only at the start, whatever their rows say?

    Raises:
        ParameterException: a value has the wrong type or is outside its range.
        InputError: a value that the table does not allow, or a parameter file for a node of this
            name in another namespace.
    """
    # the arguments that rclpy.init reads
    check_parameter_files(node.get_fully_qualified_name(), sys.argv, warn)
    by_name = {row.name: row for row in rows(table)}
    for row in by_name.values():
        descriptor = _descriptor(row, fixed=fixed)
        if not row.type.endswith("array"):
            node.declare_parameter(row.name, row.default, descriptor)
            continue
        # an empty array gets its type when it is set with one
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
    return checked(table, {name: node.get_parameter(name).value for name in by_name})


def values(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """The values by name of those parameters that are in the table."""
    return {each.name: each.value for each in parameters if each.name in BY_NAME}


def typed(parameter: Parameter, table: Mapping[str, Row] = BY_NAME) -> Parameter:
    """A parameter whose array, if it is empty or has only integers, has the table's type.

    Args:
        parameter: the parameter as set.
        table: the rows by name.
    """
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
            pass  # wrong entries, which the table refuses
    return parameter


def _descriptor(row: Row, *, fixed: bool) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=row.meaning + (f" [{row.unit}]" if row.unit else ""),
        additional_constraints=row.range,
        read_only=row.read_only or fixed,
        # ROS takes an empty array for bytes and [4, 100] for integers: the table checks arrays
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
