# SPDX-License-Identifier: Apache-2.0
"""Requests to set a node's parameters, whose responses may take time.

rclpy responds as soon as a callback returns; a callback that awaits something makes it spin
without a pause until that is available. Here, the parameter services are hidden from the
executor: the node polls for requests, and responds when the result is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.parameter import Parameter

from ..errors import one_line
from .idle_group import PolledGroup

SERVICES = (SetParameters, SetParametersAtomically)

Answer = Callable[[SetParametersResult], None]


class ParameterRequests:
    """The requests to a node's services of the types `SERVICES`.

    Attributes:
        polled: the callback group in which these services must be created.
    """

    def __init__(self) -> None:
        self.polled = PolledGroup()
        self._services: list[Any] = []

    def add(self, service: Any) -> None:
        """Add a service of the node."""
        self._services.append(service)

    def taken(self) -> Iterator[tuple[list[Parameter], Answer]]:
        """(parameters to be set atomically, the function that responds), for all requests."""
        for service in self._services:
            while True:
                with service.handle:
                    request, header = service.handle.service_take_request(service.srv_type.Request)
                if header is None:
                    break
                yield from _parts(service, request, header)


def _parts(service: Any, request: Any, header: Any) -> Iterator[tuple[list[Parameter], Answer]]:
    response = service.srv_type.Response()
    groups = [[each] for each in request.parameters]
    if service.srv_type is SetParametersAtomically:
        groups = [request.parameters]
    results: list[SetParametersResult | None] = [None] * len(groups)

    def answer(k: int, result: SetParametersResult) -> None:
        results[k] = result
        if None not in results:
            send()

    def send() -> None:
        if service.srv_type is SetParametersAtomically:
            response.result = results[0]
        else:
            response.results = results
        with suppress(RuntimeError):  # the client no longer exists
            service.send_response(response, header)

    if not groups:
        send()
    for k, group in enumerate(groups):
        try:
            parameters = [Parameter.from_parameter_msg(each) for each in group]
        except (ValueError, TypeError) as error:
            answer(k, refused(error))
        else:
            yield parameters, partial(answer, k)


def refused(reason: object) -> SetParametersResult:
    """The result of a refused request, with its reason."""
    return SetParametersResult(successful=False, reason=one_line(reason))
