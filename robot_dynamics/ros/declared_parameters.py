"""The table of parameters as ROS's: declared, described, and read back."""

from __future__ import annotations

import difflib
import sys
from array import array
from collections.abc import Callable, Iterable
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter

from ..errors import shown
from .feed_forward.parameters import BY_NAME, PARAMETERS, Settings
from .feed_forward.parameters import Parameter as Row


def declare(node: Node, warn: Callable[[str], None]) -> Settings:
    """Declare all of them; what they are set to.

    Args:
        node: theirs.
        warn: is told of parameters that were set and are none.

    Raises:
        InputError: a value that the table does not allow.
        ParameterException: a value of a wrong type, or outside its range.
    """
    for row in PARAMETERS:
        descriptor = _descriptor(row)
        if not row.type.endswith("array"):
            node.declare_parameter(row.name, row.default, descriptor)
            continue
        # an empty array has a type once it was set with one
        descriptor.read_only = False
        node.declare_parameter(row.name, list(row.default), descriptor)
        node.set_parameters([typed(node.get_parameter(row.name))])
        node.set_descriptor(row.name, _descriptor(row))
    known = {*BY_NAME, "use_sim_time", "start_type_description_service"}
    for name in node._parameter_overrides:
        if name not in known and not name.startswith("qos_overrides."):
            near = difflib.get_close_matches(name, BY_NAME, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            warn(f"unknown parameter {shown(name)}{hint}")
    return Settings.of(values(node.get_parameter(name) for name in BY_NAME))


def values(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """Name to value, of those that are in the table."""
    return {each.name: each.value for each in parameters if each.name in BY_NAME}


def typed(parameter: Parameter) -> Parameter:
    """An array that is empty, or of whole numbers, as one of the table's type."""
    row = BY_NAME.get(parameter.name)
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


def _descriptor(row: Row) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=row.meaning + (f" [{row.unit}]" if row.unit else ""),
        additional_constraints=row.range,
        read_only=row.read_only,
        # to ROS an empty array is one of bytes, [4, 100] one of integers: the table checks them
        dynamic_typing=row.type.endswith("array"),
    )
    if row.type == "double":
        upper = min(row.maximum, sys.float_info.max)
        descriptor.floating_point_range = [
            FloatingPointRange(from_value=row.minimum, to_value=upper)
        ]
    return descriptor


_ARRAYS = {
    "string_array": Parameter.Type.STRING_ARRAY,
    "double_array": Parameter.Type.DOUBLE_ARRAY,
}
