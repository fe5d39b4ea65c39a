# SPDX-License-Identifier: Apache-2.0
"""The node's behaviour from states and commands to torques, in one thread, without ROS.

    states ───→ States ───┐
    commands ─→ Commands ─┼→ ControlLaw ─→ Outlet ─→ torques
    wrenches ─→ Wrenches ─┤
    base ─────→ Base ─────┘

Each input is checked by its own class; this module decides what happens when a motion ends.
"""

from __future__ import annotations

import time as steady
from collections.abc import Callable
from typing import Any

from ...errors import ClosureError, RobotDynamicsError
from ...scalar import Floats
from . import efforts
from .base import IMU, MOTION, Base
from .commands import Commands
from .control_law import ControlLaw
from .joint_states import JointStateReader
from .limits import CommandLimits
from .motion import is_course
from .outlet import Outlet, Torques
from .parameters import Settings
from .refusal import RefusedError, Tally, no_robot, reason_of
from .residual import Residual
from .stamps import NO_CLOCK, SECOND, stamped
from .states import States
from .torque_model import Model
from .wrenches import Wrenches


class FeedForward:
    """Turns states and commands into torques, or None if nothing is to be published.

    Times are ns of the node's clock. A bad message is counted, reported through `log`, and
    changes nothing.

    Args:
        settings: the initial settings.
        log: called with lines for the log.
        steady: s, of a clock that never jumps.

    Attributes:
        settings: may be replaced while it runs.
        model: computes the torques; None until there is a robot.
        tally: counts of refused messages and other events.
        states, commands, wrenches, base: the inputs.
        outlet: the output.
        residual: measured minus modelled torques, if `residual` is set.
    """

    def __init__(
        self,
        settings: Settings,
        log: Callable[[str], None],
        steady: Callable[[], float] = steady.monotonic,
    ):
        self.settings = settings
        self.model: Model | None = None
        self.tally = Tally(log, steady)
        self.states = States()
        self.commands = Commands(self.tally)
        self.wrenches = Wrenches(self.tally)
        self.base = Base()
        self.outlet = Outlet(self.tally, steady)
        self.residual = Residual() if settings.residual else None
        self._law = ControlLaw(self.states, self.wrenches, self.base)
        self._ticked = self._time = self._watched = 0
        self._steady, self._advanced = steady, 0.0

    # The robot

    def adopt(self, model: Model) -> None:
        """Use this model from now on.

        If the robot differs from the previous one, states, commands and wrenches are discarded:
        with another type, axis or zero of a joint the same numbers are other positions, and a link
        of the same name is another link.
        """
        old, self.model = self.model, model
        if old is None or not old.is_the_robot_of(model):
            self.wrenches.drop_all("the description is of a different robot")
            self._forget()

    def release(self) -> None:
        """Discard the robot and its states."""
        self.model = None
        self._forget()
        self.outlet.at_rest = True
        self.states.forget_times()
        self.commands.forget_times()
        self.wrenches.clear()

    def _forget(self) -> None:
        """Discard states and commands of the previous robot, which do not apply to this one."""
        self._law.last_q = None
        self.commands.forget()
        self.base.clear()
        self.states.set_model(self.model)
        self.outlet.restart()
        if self.residual is not None:
            self.residual = Residual()

    @property
    def _robot(self) -> Model:
        if self.model is None:
            raise no_robot()
        return self.model

    # Input

    def state(self, message: Any, now: int, sent: int | None = None) -> Torques | None:
        """Handle a JointState; for `sent` see `sampled`."""
        if self.residual is not None:
            self.residual.at = None
        try:
            model = self._robot
            time = self.states.take(message, now, self.settings, sent)
        except RobotDynamicsError as error:
            self.tally.refuse("joint_states", error)
            return None
        if time is None:
            return None
        if self.states.missing:
            self.tally.note(
                "joint_states",
                "missing sensor",
                f"no reading of {', '.join(map(repr, self.states.missing))}: continuing with "
                "solved values",
            )
        if self.settings.merge_states and not self.states.reported:
            return None
        torques = self._output(time, now)
        if self.residual is not None:
            self._compare(self.residual, model, time, now)
        return torques

    def _compare(self, residual: Residual, model: Model, time: int, now: int) -> None:
        """Compare measured torques with the model's."""
        states, settings = self.states, self.settings
        try:
            self.base.move(model, settings, now)
            known = (
                self.wrenches.torques(model, states.q, now, settings) if self.wrenches.on else 0.0
            )
            residual.update(states, model, time, settings.residual_filter, known)
        except RobotDynamicsError as error:
            self.tally.note("residual", reason_of(error), f"no residual: {error}")

    def command(self, message: Any, now: int, sent: int | None = None) -> None:
        """Handle a JointTrajectory, which takes over with the next state; `sent`: see `sampled`."""
        with self.tally.refusing("command"):
            # only a trajectory with a stamp ends by the stamps of the states
            if now == 0 and not (is_course(message) and stamped(message.header)):
                raise RefusedError("no clock", f"{NO_CLOCK}; send it again when there is")
            self.commands.take(message, now, self._robot, self.settings, sent)

    def wrench(self, message: Any, now: int) -> str | None:
        """Handle a WrenchStamped, an external wrench on a link; see `Model.wrench_torques`.

        Returns:
            its link if a model must be built for it first, else None.
        """
        with self.tally.refusing("wrench"):
            spec = self._robot.spec
            link = self.wrenches.take(message, spec.mechanism, now, self.settings.max_age)
            if link in self.wrenches.on and link not in spec.wrench_links:
                return link
        return None

    def imu(self, message: Any, now: int, sent: int | None = None) -> None:
        """Handle an Imu of the base; for `sent` see `sampled`."""
        with self.tally.refusing(IMU):
            self.base.take_imu(message, self._robot, self.settings, now, sent)

    def base_motion(self, message: Any, now: int) -> None:
        """Handle a MultiDOFJointTrajectory of one point: the motion of the base."""
        with self.tally.refusing(MOTION):
            self.base.take_motion(message, self._robot, self.settings, now)

    def filler(self, now: int) -> Callable[[Any], str]:
        """A function, usable in any thread, that adds torques to the points of a JointTrajectory
        for another controller; see `efforts.fill`.

        Raises:
            RefusedError: there is no robot, there is no state of joints that are read but not
                driven, or the model is unsuitable; see `efforts.check`.
        """
        model = self._robot
        efforts.check(model)
        limits = CommandLimits.of(self.settings, model)
        undriven, _ = self.states.undriven(now, self.settings.max_age)
        return lambda message: efforts.fill(message, model, limits, now=now, undriven=undriven)

    def tick(self, now: int) -> Torques | None:
        """With commanded feedback, publish torques while no states arrive."""
        driven, self._ticked = self.outlet.count > self._ticked, self.outlet.count
        if driven or self.model is None:
            return None
        output = self._output(now, now)
        self._ticked = self.outlet.count
        return output

    # Ends

    def watch(self, now: int) -> Torques | None:
        """Detect lost feedback: the torques of a motion must not stay applied. A system clock that
        was set back, which ROS does not report, is detected here, too."""
        if now < self._watched:
            return self.clock_jumped_back(now)
        self._watched = now
        limit = self.settings.max_age
        if self.wrenches.on:
            self.wrenches.drop_old(now, limit)
        self.commands.lapse(self._time, now, self.settings)
        if limit == 0 or not self.outlet.holds_a_motion_for(now, limit):
            return None
        self.tally.note(
            "torques",
            "feedback lost",
            f"no usable state for {limit:g} s: applying on_timeout: {self.settings.on_timeout}; "
            "the command has ended, send a new one when states arrive again",
            anew=True,
        )
        return self._stopped(now)

    def _stopped(self, now: int) -> Torques | None:
        """Leave the robot at rest until a new command arrives."""
        output = self.farewell(now)
        self._end_command(now)
        return output

    def farewell(self, now: int) -> Torques | None:
        """The last torques before the output stops, which the controllers downstream will hold.

        They are those at rest at the last position, or zero if on_timeout is stop.
        """
        if self.outlet.at_rest or self.model is None:
            return None
        try:
            torques = self._law.final_torques(self.model, self.settings)
            return self._published(torques, now, now, at_rest=True, last=True)
        except RobotDynamicsError as error:
            self.tally.refuse("torques", error)
            return None

    def torques_if_hung(self) -> Floats | None:
        """The torques (m,) of `farewell` for another thread while this one hangs; None: there are
        none."""
        if self.outlet.at_rest or self.model is None:
            return None
        try:
            return self._law.limited_final_torques(self.model, self.settings)
        except RobotDynamicsError:  # nothing may end that thread
            return None

    def resume_after_hang(self, now: int) -> Torques | None:
        """Continue after the loop hung and the watchdog published the torques at rest."""
        self.tally.note(
            "torques",
            "loop hung",
            "the node's control loop stalled: the torques at rest were published, and the command "
            "has ended; send a new one",
            anew=True,
        )
        return self._stopped(now)

    def deactivate(self, now: int) -> Torques | None:
        """The last torques; the command is discarded, and only a new one moves the robot."""
        output = self.farewell(now)
        self.commands.drop()
        return output

    def clock_jumped_back(self, now: int) -> Torques | None:
        """A simulator was reset, or the system's clock was set back."""
        return self._clock_broke("jumped back", now)

    def clock_changed(self, now: int) -> Torques | None:
        """The node switched between simulated time and wall time."""
        return self._clock_broke("changed", now)

    def _clock_broke(self, what: str, now: int) -> Torques | None:
        """Earlier stamps and times are invalid: the command is over."""
        self._watched = now
        self.states.forget_times()
        self.commands.forget_times()
        if self.residual is not None:
            self.residual = Residual()
        over = "command and wrenches have" if self.wrenches.on else "the command has"
        self.wrenches.clear()
        self.tally.note("clock", what, f"the clock {what}: {over} ended; send a new one", anew=True)
        output = self._stopped(now)
        self.base.clear()
        self.outlet.at = now
        return output

    def _end_command(self, now: int) -> None:
        commands, last_q = self.commands, self._law.last_q
        if self.model is None or (last_q is None and not self.settings.measured):
            commands.pending = commands.motion = None
            return
        # with measured feedback no position is held: somebody may have moved the robot
        held = None if last_q is None or self.settings.measured else last_q
        commands.interrupt(None if held is None else held[: len(self.model.joints)], now)

    # Output

    def _output(self, time: int, now: int) -> Torques | None:
        model, commands, settings = self._robot, self.commands, self.settings
        began = commands.motion, commands.phase, commands.pending
        if time != self._time:
            self._time, self._advanced = time, self._steady()
        try:
            if model.sensors is not None:
                self._correct_readings(model)
            if commands.pending is not None:
                commands.begin(time, now, settings.max_age, lambda: self._start(model, time, now))
            motion = commands.motion
            if motion is None:
                return None
            commands.lapse(time, now, settings)
            if commands.is_over:
                return self._after_timeout(model, time, now)
            self._check_time_advances()
            desired = motion.at(time + int(settings.lookahead * SECOND))
            return self._published(self._law.following(model, settings, desired, now), time, now)
        except ClosureError as error:
            # the controllers downstream hold the torques of a motion into a singularity
            self.tally.refuse("torques", error)
            return self._stopped(now)
        except RobotDynamicsError as error:
            if commands.motion is not began[0] and not commands.is_over:
                # the command began from an unusable state: undo its beginning
                commands.motion, commands.phase, commands.pending = began
            self.tally.refuse("torques", error)
            return None

    def _check_time_advances(self) -> None:
        """Check that the time of the states has not stood still for long: a motion would never end.

        Raises:
            RefusedError: it has, by a clock that never jumps.
        """
        limit = self.settings.max_age
        if 0 < limit < self._steady() - self._advanced:
            raise RefusedError(
                "no clock",
                f"neither /clock nor the stamps of joint_states have advanced for {limit:g} s "
                "(max_age)",
            )

    def _correct_readings(self, model: Model) -> None:
        """Replace readings that are missing or distrusted by solved values."""
        assert model.sensors is not None
        states = self.states
        states.q, states.qd = model.corrected(states.q, states.qd)
        for event, text in model.sensors.news():
            self.tally.note("sensors", event, text)

    def _start(self, model: Model, time: int, now: int) -> tuple[Floats | None, Floats | None]:
        """q, qd (n,) at which a trajectory starts: measured or commanded."""
        n, motion = len(model.joints), self.commands.motion
        if self.settings.measured:
            return self.states.q[:n], self.states.qd[:n]
        if motion is not None:
            desired = motion.at(time)
            return desired.q, desired.qd
        if not self.states.is_old(now, self.settings.max_age):
            try:
                return JointStateReader(model.joints).read(self.states.whole)
            except RefusedError:
                pass
        return None, None

    def _after_timeout(self, model: Model, time: int, now: int) -> Torques | None:
        """Torques, or None, after a command, according to `on_timeout`."""
        action, measured = self.settings.on_timeout, self.settings.measured
        if measured and action != "hold":
            # the robot may drift: its last position is no longer held, whatever is set later
            self.commands.let_go()
        if action == "stop":
            # torques at rest may have been published under another on_timeout
            self.outlet.at_rest = self.outlet.is_zero
            return self.farewell(now)
        assert self.commands.motion is not None
        if measured and action == "hold":
            still = self.commands.motion.at(time)
            torques = self._law.following(model, self.settings, still, now)
            return self._published(torques, time, now)
        q = self.states.q if measured else self._law.last_q
        if q is None:
            return None
        torques = self._law.resting(model, self.settings, q, now)
        return self._published(torques, time, now, at_rest=True)

    def _published(
        self, torques: Floats, time: int, now: int, *, at_rest: bool = False, last: bool = False
    ) -> Torques:
        assert self.model is not None
        return self.outlet.passed(
            torques, self.model, self.settings, time, now, at_rest=at_rest, last=last
        )
