"""From states and commands to torques: the node's behaviour, in one thread, without ROS."""

from __future__ import annotations

import time as steady
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import ClosureError, RobotDynamicsError, listed, shown
from ...scalar import Floats
from . import efforts
from . import motion as motions
from .derivative import Derivative
from .joint_states import JointStateReader, all_finite
from .limits import CommandLimits, check_torques
from .merging import Merging, Reading
from .model import Model
from .motion import Course, Desired, Motion, Setpoint
from .onset import Onset
from .parameters import Settings
from .rates import Rates
from .refusal import RefusedError, Tally
from .residual import Residual
from .stamps import SECOND, Stamps, stamped
from .wrenches import Wrenches


class Torques(NamedTuple):
    """The torques to publish."""

    values: Floats
    """(m,) in the order of the model's outputs, N·m or N"""
    time: int
    """ns, of the state that they belong to"""


class FeedForward:
    """Takes states and commands, gives torques, or None where nothing is to be published.

    Times are ns of the node's clock. A bad message is counted, reported through `log`, and
    changes nothing.

    Attributes:
        model: what computes, or None until there is a robot.
        settings: may be replaced while it runs.
        phase: waiting (for a first command), following, finished (a trajectory has ended),
            timeout, or interrupted.
        residual: what the model does not explain of the measured torques, where it is asked for.
        residual_at: ns, of the newest state where that state has one.
        over_since: ns, when the command ended.
        foreign: how many states told of other joints alone, and were ignored.
        wrenches: what acts on links from outside.
    """

    def __init__(
        self,
        settings: Settings,
        log: Callable[[str], None],
        steady: Callable[[], float] = steady.monotonic,
    ):
        self.settings = settings
        self.model: Model | None = None
        self.phase = "waiting"
        self.tally = Tally()
        self.states = self.commands = self.outputs = self.foreign = 0
        self.state_at: int | None = None
        self.command_at: int | None = None
        self.over_since = 0
        self._log = log
        self._steady = steady
        self._state_stamps, self._command_stamps = Stamps(), Stamps()
        self._motion: Motion | None = None
        self._pending: Motion | None = None
        self._ticked = 0
        self.output_at: int | None = None
        self._output_on_the_wall = 0.0
        self._at_rest = True
        self._onset = Onset()
        self.wrenches = Wrenches()
        self._forget_state()

    def _forget_state(self) -> None:
        self._reader = JointStateReader(())
        self._known = self._driven = frozenset[str]()
        self.merging, self.rates = Merging(()), Rates()
        self._accelerations: Derivative | None = None
        self.residual = Residual() if self.settings.residual else None
        self.residual_at: int | None = None
        self._derived: Derivative | None = None
        self._q = self._qd = np.zeros(0)
        self._message: Any = None
        self._last_q: Floats | None = None
        self.state_at = None

    # What comes in

    def adopt(self, model: Model) -> None:
        """Compute with this model from now on. A motion of other joints is forgotten."""
        old, self.model = self.model, model
        if lost := self.wrenches.keep(link.name for link in model.wish.mechanism.links):
            self._note("wrench", "removed", f"wrench removed: no link {listed(lost)} any more")
        if old is not None and old.has_the_joints_of(model):
            return
        self._motion = self._pending = None
        self._onset = Onset()
        self.phase = "waiting"
        self._forget_state()
        self._known, self._driven = frozenset(model.read), frozenset(model.joints)
        besides = model.read[len(model.joints) :]
        self._reader = JointStateReader(
            model.read if self.settings.measured else besides, model.optional
        )
        self.merging = Merging(self._reader.joints, model.optional)
        mechanism = model.wish.mechanism
        self.rates = Rates(
            [name for name in model.read if mechanism.joint(name).type == "continuous"]
        )

    def state(self, message: Any, now: int) -> Torques | None:
        """A JointState came."""
        try:
            if self.model is None:
                raise RefusedError(
                    "no robot", "there is no robot yet: robot_description has not come"
                )
            if message.name and self._known.isdisjoint(message.name):
                self.foreign += 1
                return None
            time = self._read(message, now)
        except RobotDynamicsError as error:
            self.refuse("joint_states", error)
            return None
        if self._reader.missing:
            self._note(
                "joint_states",
                "missing sensor",
                f"no reading of {', '.join(map(repr, self._reader.missing))}: going on with "
                "solved values",
            )
        self._message, self.state_at = message, now
        self.states += 1
        if self.settings.merge_states and self._driven.isdisjoint(message.name):
            return None
        torques = self._output(time, now)
        if self.residual is not None:
            self.residual_at = self._compare(message, time, now)
        return torques

    def _compare(self, message: Any, time: int, now: int) -> int | None:
        """Measured torques and the model's; the state's time, where there is a residual."""
        assert self.model is not None
        assert self.residual is not None
        constant = self.settings.residual_filter
        try:
            there = self.residual.update(
                message.name, message.effort, self.model, self._q, self._qd, time, constant,
                self._taken(self._q, now) if self.wrenches.on else 0.0,
            )  # fmt: skip
        except RobotDynamicsError as error:
            reason = error.reason if isinstance(error, RefusedError) else "impossible"
            self._note("residual", reason, f"no residual: {error}")
            return None
        return time if there else None

    def _read(self, message: Any, now: int) -> int:
        """Take q and qd from a JointState; its time, ns.

        Raises:
            RefusedError: it is none of this robot, or comes at a wrong time.
        """
        settings, stamps = self.settings, self._state_stamps
        told: dict[str, Reading] = {}
        stamp = stamped(message.header)
        if settings.merge_states:
            stamps = self.merging.stamps(message.name)
        time = stamps.checked(stamp, now, settings.max_age)
        whole = message
        if settings.merge_states:
            whole, told = self.merging.merged(message, time, settings.max_age)
        if self._reader.joints:
            fill = None
            if settings.missing_velocities == "derive":
                fill = self.rates.at(time, settings.derivative_filter)
            self._q, self._qd = self._reader.read(whole, fill)
        stamps.accept(time, now)
        self.merging.keep(told)
        return time

    def command(self, message: Any, now: int) -> None:
        """A JointTrajectory came. It takes over with the next state."""
        try:
            if self.model is None:
                raise RefusedError(
                    "no robot", "there is no robot yet: robot_description has not come"
                )
            settings = self.settings
            stamp = stamped(message.header)
            is_state = not motions.is_course(message)
            if is_state:
                self._command_stamps.checked(stamp, now, settings.max_age)
            self._pending = motions.read(
                message,
                self.model.joints,
                self.model.periodic,
                now=now,
                whole_state=not settings.measured or self.model.feedback is not None,
                missing=self._missing(),
                limits=CommandLimits.of(settings, self.model),
            )
        except RobotDynamicsError as error:
            self.refuse("command", error)
            return
        self._accelerations = self._derived
        if is_state and stamp:
            self._command_stamps.accept(stamp, now)
        self.command_at = now
        self.commands += 1

    def wrench(self, message: Any, now: int) -> str | None:
        """A WrenchStamped came: what acts on a link from outside; see `Model.taken_by`.

        Returns:
            its link, where the model first has to be built for it.
        """
        try:
            if self.model is None:
                raise RefusedError(
                    "no robot", "there is no robot yet: robot_description has not come"
                )
            wish = self.model.wish
            link = self.wrenches.take(message, wish.mechanism, now, self.settings.max_age)
        except RobotDynamicsError as error:
            self.refuse("wrench", error)
            return None
        return link if link in self.wrenches.on and link not in wish.pushed else None

    def _drop_old_wrenches(self, now: int) -> None:
        limit = self.settings.max_age
        for link, age in self.wrenches.drop_old(now, limit).items():
            self._note(
                "wrench",
                "over",
                f"wrench on {shown(link)} dropped: the newest is {age:.3f} s old, expected at most "
                f"max_age = {limit:g} s",
                anew=True,
            )

    def _taken(self, q: Floats, now: int) -> Floats:
        """What wrenches add to the torques (m,) at q (k,)."""
        assert self.model is not None
        self._drop_old_wrenches(now)
        acting = {link: wrench.value for link, wrench in self.wrenches.on.items()}
        return self.model.taken_by(acting, q)

    def _missing(self) -> motions.Missing | None:
        """What gives a single point the accelerations that it lacks."""
        assert self.model is not None
        self._derived = self._accelerations
        if self.settings.missing_accelerations == "zero":
            return motions.no_accelerations(self.model.joints)
        return self._derive if self.settings.missing_accelerations == "derive" else None

    def _derive(self, qd: Floats | None, time: int) -> Floats:
        if qd is None:
            raise RefusedError(
                "no velocities", "a single point carries no velocities to derive accelerations from"
            )
        before = self._accelerations
        self._derived = (
            Derivative(qd, time)
            if before is None
            else before.next(qd, time, self.settings.derivative_filter)
        )
        # a first point says nothing about accelerations
        return np.zeros_like(qd) if self._derived.value is None else self._derived.value

    def fill(self, message: Any, now: int) -> None:
        """Give the points of a JointTrajectory for another controller their torques.

        Raises:
            RefusedError: it is no motion of this robot; see `efforts.fill`.
        """
        if self.model is None:
            raise RefusedError("no robot", "there is no robot yet: robot_description has not come")
        limits = CommandLimits.of(self.settings, self.model)
        remark = efforts.fill(
            message, self.model, limits, now=now, besides=lambda: self._besides(now)
        )
        if remark:
            self._note("trajectory_in", "limited", remark)

    def _besides(self, now: int) -> Floats:
        """q (k - n,) of the joints that are read but not driven."""
        assert self.model is not None
        names = self.model.read[len(self.model.joints) :]
        if names and self._is_old(now):
            raise self._no_states(names)
        return self._q[len(self._q) - len(names) :]

    @staticmethod
    def _no_states(names: Sequence[str]) -> RefusedError:
        return RefusedError(
            "no joint states",
            f"no recent joint_states with {', '.join(names)}; publish them, or name them "
            "in locked_joints",
        )

    def tick(self, now: int) -> Torques | None:
        """Time has passed, with feedback commanded: go on where no states drive the output."""
        driven, self._ticked = self.outputs > self._ticked, self.outputs
        if driven or self.model is None:
            return None
        output = self._output(now, now)
        self._ticked = self.outputs
        return output

    def watch(self, now: int) -> Torques | None:
        """Lost feedback: a torque that belongs to a motion must not stay for good."""
        if self.wrenches.on:
            self._drop_old_wrenches(now)
        at, limit = self.output_at, self.settings.max_age
        if at is None or self._at_rest or limit == 0:
            return None
        # simulated time may stand still for good
        on_the_wall = self._steady() - self._output_on_the_wall
        if (now - at) / SECOND <= limit and on_the_wall <= limit:
            return None
        action = self.settings.on_timeout
        self._note(
            "torques",
            "feedback lost",
            f"no usable state for {limit:g} s: on_timeout is {action}, and the command is over; "
            "when states are back, send a new one",
            anew=True,
        )
        return self._stopped(now)

    def _stopped(self, now: int) -> Torques | None:
        """The robot is left at rest; nothing sets it in motion again by itself."""
        output = self.farewell(now)
        self._end_command(now)
        return output

    def farewell(self, now: int) -> Torques | None:
        """The last torques before silence: the controllers downstream keep them.

        At rest where the robot was seen last, or zero where on_timeout is stop.
        """
        if self._at_rest or self.model is None:
            return None
        try:
            return self._published(self._resting(), now, now, at_rest=True, last=True)
        except RobotDynamicsError as error:
            self.refuse("torques", error)
            return None

    def last_words(self) -> Floats | None:
        """Torques (m,) as in a farewell, for another thread while this one hangs; None: there are
        none to say."""
        model, q = self.model, self._last_q
        if self._at_rest or model is None:
            return None
        if self.settings.on_timeout == "stop" or q is None:
            return np.zeros(len(model.outputs))
        still = np.zeros((1, len(q)))
        torques = model.along(q[None], still, still[:, : len(model.joints)])[0]
        return np.clip(torques, -model.limits, model.limits) if all_finite(torques) else None

    def came_back(self, now: int) -> Torques | None:
        """The loop hung, and the last words were said for it."""
        self._note(
            "torques",
            "loop hung",
            "the node's loop hung: the torques at rest went out, and the command is over; send a "
            "new one",
            anew=True,
        )
        return self._stopped(now)

    def retire(self, now: int) -> Torques | None:
        """The last torques; the command is forgotten, nothing follows until there is a new one."""
        output = self.farewell(now)
        self._motion = self._pending = None
        self.phase = "waiting"
        return output

    def release(self) -> None:
        """There is no robot any more, and no state of it."""
        self.model = self._motion = self._pending = None
        self.phase, self._at_rest = "waiting", True
        self._state_stamps, self._command_stamps = Stamps(), Stamps()
        self.wrenches = Wrenches()
        self._forget_state()

    def clock_jumped_back(self, now: int) -> Torques | None:
        """A simulator was reset."""
        return self._clock_broke("jumped back", now)

    def clock_changed(self, now: int) -> Torques | None:
        """Simulated time took over from the wall's, or gave way to it."""
        return self._clock_broke("changed", now)

    def _clock_broke(self, what: str, now: int) -> Torques | None:
        """Earlier stamps and times are void: the command is over."""
        self._state_stamps.forget()
        self.merging.forget()
        self._command_stamps.forget()
        over = "command and wrenches are" if self.wrenches.on else "the command is"
        self.wrenches = Wrenches()
        self._note("clock", what, f"the clock {what}: {over} over; send a new one", anew=True)
        output = self._stopped(now)
        self.output_at = now
        return output

    def _end_command(self, now: int) -> None:
        """The command is over: on_timeout follows (where a timeout is set; else a rest)."""
        self._pending = None
        if self._motion is None:
            return
        if self.model is None or (self._last_q is None and not self.settings.measured):
            self._motion = None
            return
        n = len(self.model.joints)
        # where it is measured, no position is wanted any more: somebody may have moved the robot
        q = None if self._last_q is None or self.settings.measured else self._last_q[:n]
        if self.phase == "following":
            self.phase, self.over_since = "interrupted", now
        since = now - int((self.settings.command_timeout + 1) * SECOND)
        self._motion = Setpoint(Desired(q, np.zeros(n), np.zeros(n)), since)

    # What goes out

    def _output(self, time: int, now: int) -> Torques | None:
        before = self._motion, self._pending
        try:
            if self.model is not None and self.model.sensors is not None:
                self._q, self._qd = self.model.believed(self._q, self._qd)
                for event, text in self.model.sensors.news():
                    self._note("sensors", event, text)
            if self._pending is not None:
                self._begin(time, now)
            if self._motion is None:
                return None
            timeout = self.settings.command_timeout
            over = self._motion.over_for(time, now)
            if timeout == 0 or over <= timeout:
                if self.phase != "interrupted":
                    self.phase = "following"
                desired = self._motion.at(time + int(self.settings.lookahead * SECOND))
                return self._published(self._following(desired, now), time, now)
            if self.phase in ("waiting", "following"):
                self._tell_end(now, over)
            return self._after_timeout(time, now)
        except ClosureError as error:
            # what the controllers behind hold belongs to the way into a singularity
            self.refuse("torques", error)
            return self._stopped(now)
        except RobotDynamicsError as error:
            if self._motion is not before[0]:
                # it began from a state that is worth nothing
                self._motion, self._pending = before
            self.refuse("torques", error)
            return None

    def _tell_end(self, now: int, over: float) -> None:
        """The command ended some s ago."""
        self.over_since = now - round(over * SECOND)
        if isinstance(self._motion, Course):
            self.phase = "finished"
            return
        self.phase = "timeout"
        self._note(
            "command",
            "timeout",
            f"no command for {over:.3g} s (command_timeout is "
            f"{self.settings.command_timeout:g} s): on_timeout is {self.settings.on_timeout}",
            anew=True,
        )

    def _begin(self, time: int, now: int) -> None:
        pending, self._pending = self._pending, None
        assert pending is not None
        assert self.command_at is not None
        waited, limit = (now - self.command_at) / SECOND, self.settings.max_age
        try:
            if 0 < limit < waited:
                raise RefusedError(
                    "waited too long",
                    f"it waited {waited:.3f} s for joint_states, expected at most max_age = "
                    f"{limit:g} s; send it again",
                )
            self._motion = pending.begun(time, *self._start(time, now))
            self.phase = "following"
            if self._motion.remark:
                self._note("command", "no lead-in", self._motion.remark)
        except RefusedError as error:
            self.refuse("command", error)

    def _start(self, time: int, now: int) -> tuple[Floats | None, Floats | None]:
        """q, qd (n,) from which a trajectory sets out: where the robot is, or is wanted."""
        assert self.model is not None
        n = len(self.model.joints)
        if self.settings.measured:
            return self._q[:n], self._qd[:n]
        if self._motion is not None:
            desired = self._motion.at(time)
            return desired.q, desired.qd
        if self._message is not None and not self._is_old(now):
            try:
                return JointStateReader(self.model.joints).read(self._message)
            except RefusedError:
                pass
        return None, None

    def _following(self, desired: Desired, now: int) -> Floats:
        assert self.model is not None
        q, qd = (self._q, self._qd) if self.settings.measured else self._commanded(desired, now)
        torques = self.model(q, qd, desired.qdd)
        if self.settings.max_acceleration and all_finite(torques):
            check_torques(self.model, self.settings.max_acceleration, q, qd, torques)
        if self.wrenches.on:
            torques = torques + self._taken(q, now)
        if self.model.feedback is not None:
            n = len(self.model.joints)
            torques = torques + self.model.feedback.torques(desired.q, desired.qd, q[:n], qd[:n])
        # where there are torques is where the robot can be left at rest
        self._last_q = q
        return torques

    def _commanded(self, desired: Desired, now: int) -> tuple[Floats, Floats]:
        """q, qd (k,): the wanted ones, and the measured ones of the joints besides."""
        assert desired.q is not None
        assert desired.qd is not None
        besides = self._reader.joints
        if not besides:
            return desired.q, desired.qd
        if self._is_old(now):
            raise self._no_states(besides)
        return np.concatenate([desired.q, self._q]), np.concatenate([desired.qd, self._qd])

    def _is_old(self, now: int) -> bool:
        """Is there no state that may still be used?"""
        limit = self.settings.max_age
        return self.state_at is None or 0 < limit < (now - self.state_at) / SECOND

    def _after_timeout(self, time: int, now: int) -> Torques | None:
        assert self.model is not None
        assert self._motion is not None
        action, measured = self.settings.on_timeout, self.settings.measured
        if action == "stop":
            return self.farewell(now)
        if measured and action == "hold":
            rest = np.zeros(len(self.model.joints))
            still = Desired(self._motion.at(time).q, rest, rest)
            return self._published(self._following(still, now), time, now)
        q = self._q if measured else self._last_q
        if q is None:
            return None
        torques = self.model.at_rest(q)
        self._last_q = q
        return self._published(torques, time, now, at_rest=True)

    def _resting(self) -> Floats:
        """Torques that carry the robot at rest where it was last, or zero for `stop`."""
        assert self.model is not None
        if self.settings.on_timeout == "stop" or self._last_q is None:
            return np.zeros(len(self.model.outputs))
        return self.model.at_rest(self._last_q)

    def _published(
        self, torques: Floats, time: int, now: int, *, at_rest: bool = False, last: bool = False
    ) -> Torques:
        """Torques within limits, as they go out.

        Args:
            at_rest: they carry the robot where it is.
            last: nothing follows for now: they have to be right at once.
        """
        assert self.model is not None
        if not all_finite(torques):
            by_joint = dict(zip(self.model.outputs, torques.tolist(), strict=True))
            raise RefusedError(
                "not finite", f"the torques came out as {by_joint}; none are published"
            )
        limits = self.model.limits
        if (np.abs(torques) > limits).any():
            k = int(np.argmax(np.abs(torques) - limits))
            self._note(
                "torques",
                "limited",
                f"torque of {self.model.outputs[k]!r} cut from {torques[k]:.6g} to "
                f"±{limits[k]:.6g} (effort_limits)",
            )
            torques = np.clip(torques, -limits, limits)
        if last:
            self._onset.interrupted(torques)
        elif self.settings.ramp_time or self.model.slew is not None:
            shaped = self._onset.shaped(torques, now, self.settings.ramp_time, self.model.slew)
            at_rest = at_rest and bool((shaped == torques).all())
            torques = shaped
        self.outputs += 1
        self.output_at, self._at_rest = now, at_rest
        self._output_on_the_wall = self._steady()
        return Torques(torques, time)

    # What is told

    def refuse(self, source: str, error: RobotDynamicsError) -> None:
        """Count and report something that was dropped."""
        reason = error.reason if isinstance(error, RefusedError) else "impossible"
        if isinstance(error, ClosureError):
            reason = "closure"
        what = "not published" if source == "torques" else "dropped"
        text = f"{source} {what}: {error}"
        self._tell(self.tally.rejected, f"{source}: {reason}", text)

    def _note(self, source: str, reason: str, text: str, *, anew: bool = False) -> None:
        self._tell(self.tally.events, f"{source}: {reason}", text, anew=anew)

    def _tell(self, counter: Counter[str], key: str, text: str, *, anew: bool = False) -> None:
        line = self.tally.add(counter, key, text, self._steady(), anew=anew)
        if line is not None:
            self._log(line)
