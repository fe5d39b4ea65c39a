# SPDX-License-Identifier: Apache-2.0
"""A model watched while the robot works: changes are found, proven, and adopted on request."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from recorded import SIX_AXIS, changed, recording
from uncompiled import InverseDynamics

import robot_dynamics as rd
from robot_dynamics.errors import InputError, RecordingError
from robot_dynamics.identification import Recording
from robot_dynamics.identification.watch import BLOCKS, Watch
from robot_dynamics.mechanism import Friction, Inertial
from robot_dynamics.mechanism.dynamic_parameters import standard_parameters, with_parameters
from robot_dynamics.mechanism.transform import with_parts

pytest.importorskip("scipy", reason="SciPy filters the recordings")

ARM = rd.load(SIX_AXIS)
LINK = ARM.moving[-1].name
NOISE = 0.01


def working(by: dict[str, float]) -> rd.Mechanism:
    """The arm with these parameters changed by these amounts."""
    values = standard_parameters(ARM, "full", True)
    return with_parameters(ARM, {name: values[name] + more for name, more in by.items()})


CHANGE = {
    f"{LINK}.mass": 2.0, f"{LINK}.mx": 0.1, f"{LINK}.mz": 0.25,
    f"{LINK}.Ixx": 0.06, f"{LINK}.Iyy": 0.07, f"{LINK}.Izz": 0.02, f"{LINK}.Ixz": -0.0125,
    f"{ARM.joint_names[1]}.viscous": 4.0, f"{ARM.joint_names[3]}.coulomb": 1.5,
}  # fmt: skip


def blocks(mechanism, count, seed=0):
    return [recording(mechanism, 5.0, 100.0, seed=10 * seed + k, noise=NOISE) for k in range(count)]


@pytest.fixture(scope="module")
def watched():
    watch = Watch(ARM, LINK)
    return watch, [watch.add(block) for block in blocks(working(CHANGE), 8)]


def test_what_has_changed_is_found_within_its_deviations(watched):
    _, estimates = watched
    numbers = estimates[-1].numbers
    for name, more in CHANGE.items():
        each = numbers[name]
        assert abs(each.value - each.in_force - more) < 5 * each.deviation + 0.01 * abs(more)
    assert abs(numbers[f"{LINK}.mass"].value - numbers[f"{LINK}.mass"].in_force - 2.0) < 0.1
    untouched = [name for name in numbers if name not in CHANGE and name.endswith(".coulomb")]
    for name in untouched:
        assert abs(numbers[name].value - numbers[name].in_force) < 5 * numbers[name].deviation


@pytest.mark.parametrize("shape", [{"presliding": 0.1}, {"smoothing": 0.5}], ids=str)
def test_a_change_of_dry_friction_is_that_of_friction_which_turns_round(shape):
    def rubbing(more: float) -> rd.Mechanism:
        laws = {
            joint: Friction(2.0, 5.0 + more * (k == 3), **shape)
            for k, joint in enumerate(ARM.joint_names)
        }
        links = [
            replace(link, joint=replace(link.joint, friction=laws[link.joint.name]))
            if link.joint.name in laws
            else link
            for link in ARM.links
        ]
        return replace(ARM, links=tuple(links))

    watch = Watch(rubbing(0.0), LINK)
    for block in blocks(rubbing(4.0), 4, seed=5):
        numbers = watch.add(block).numbers
    changes = [numbers[f"{joint}.coulomb"] for joint in ARM.joint_names]
    found = [each.value - each.in_force for each in changes]
    assert found == pytest.approx([0, 0, 0, 4, 0, 0], abs=0.1)


def test_it_is_proven_by_blocks_that_come_after_it_alone(watched):
    _, estimates = watched
    assert [each.proven for each in estimates[:BLOCKS]] == BLOCKS * [False]
    assert estimates[BLOCKS].proven
    last = estimates[-1]
    assert last.proven
    assert sum(last.proposed.values()) < 0.2 * sum(last.missed.values())


def test_friction_that_would_drive_and_a_joint_that_becomes_worse_are_not_proven(watched):
    described = [ARM.joint(name).friction.viscous for name in ARM.joint_names]
    watch = Watch(ARM, LINK)
    for block in blocks(ARM, BLOCKS + 1, seed=6):
        (stream,) = block.streams
        pushing = stream.velocity * np.array([0, 0, 1.5, 1.5, 0, 0]) * described
        last = watch.add(replace(block, streams=(replace(stream, effort=stream.effort - pushing),)))
    name, word = f"{ARM.joint_names[2]}.viscous", "would drive the joint"
    assert last.why_not.startswith(f"{name}: ")
    assert word in last.why_not
    with pytest.raises(InputError, match=word):
        watch.adopted()
    sound = copy.deepcopy(watched[0])
    sound._judged[1, 4] = 1.2 * sound._judged[0, 4]
    with pytest.raises(InputError, match=f"{ARM.joint_names[4]}: its error is larger"):
        sound.adopted()


SIGMA = np.array([0.3, 0.5, 0.4, 0.05, 0.04, 0.03])


def noisy(mechanism, seed, reach=1.0):
    """A block whose efforts have the same noise, SIGMA, however the robot moves."""
    block = recording(mechanism, 5.0, 100.0, seed=seed, reach=reach)
    (stream,) = block.streams
    noise = SIGMA * np.random.default_rng(seed).normal(size=stream.effort.shape)
    return replace(block, streams=(replace(stream, effort=stream.effort + noise),))


def test_torques_are_predicted_with_a_band_that_holds_until_the_robot_changes():
    """By blocks that the estimate has not seen; the band is the noise and what is not known."""
    watch = Watch(ARM, LINK)
    estimates = [watch.add(noisy(ARM, 30 + k)) for k in range(8)]
    assert [bool(each.torques) for each in estimates] == [False, False, *(6 * [True])]
    inside = []
    for joint, own in zip(ARM.joint_names, SIGMA, strict=True):
        told = [each.torques[joint] for each in estimates[2:]]
        inside.append(np.mean([each.inside for each in told]))
        assert 0.95 * own < told[-1].deviation < 1.3 * own
        assert all(abs(each.measured - each.value) < 4 * each.deviation for each in told)
    assert min(inside) > 0.93
    assert 0.94 < np.mean(inside) < 0.97
    load = noisy(working({f"{LINK}.mass": 1.0}), 40)
    (stream,) = load.streams
    changed = watch.add(load).torques
    told = changed[ARM.joint_names[1]]
    assert told.inside < 0.5
    k = int(np.argmin(abs(stream.effort[:, 1] - told.measured)))
    assert stream.effort[k, 1] == pytest.approx(told.measured, rel=1e-9)
    qdd = np.gradient(stream.velocity, stream.time, axis=0)
    unloaded = InverseDynamics(ARM)(stream.position[k], stream.velocity[k], qdd[k])[1]
    assert abs(told.value - unloaded) < 3 * told.deviation < abs(told.measured - unloaded)
    assert not watch.add(load).torques  # it is calibrated anew
    # after small motion the parameters are known less well than the noise
    watch = Watch(ARM, LINK)
    for k in range(4):
        watch.add(noisy(ARM, 50 + k, reach=0.02))
    wide = watch.add(noisy(ARM, 60)).torques
    assert all(each.inside > 0.9 for each in wide.values())
    assert wide[ARM.joint_names[1]].deviation > 2 * SIGMA[1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_a_joint_without_efforts_does_not_hide_the_others(value):
    """As that of a gripper that measures none."""
    watch, k = Watch(ARM, LINK), 5
    for seed in range(4):
        block = noisy(ARM, seed)
        (stream,) = block.streams
        effort = np.where(np.arange(6) == k, value, stream.effort)
        last = watch.add(replace(block, streams=(replace(stream, effort=effort),)))
    assert list(last.torques) == list(ARM.joint_names[:k])
    assert min(each.inside for each in last.torques.values()) > 0.9
    mass = last.numbers[f"{LINK}.mass"]
    assert abs(mass.value - mass.in_force) < 4 * mass.deviation < 0.1


def test_joints_without_efforts_prove_nothing():
    """Nothing has changed, and the error of an effort that is not there is 0."""
    watch = Watch(ARM, LINK)
    for seed in range(BLOCKS + 2):
        block = noisy(ARM, seed)
        (stream,) = block.streams
        effort = np.where(np.arange(6) > 3, np.nan, stream.effort)
        last = watch.add(replace(block, streams=(replace(stream, effort=effort),)))
    assert "of the current model's, expected at most" in last.why_not


def test_a_change_counts_as_much_if_other_joints_have_no_efforts():
    """More than before at two joints, which all six on average would hide: a new beginning."""
    watch = Watch(ARM, LINK)
    robots = [ARM, ARM, ARM, ARM, working({f"{LINK}.mass": 0.3})]
    for seed, robot in enumerate(robots):
        block = noisy(robot, seed)
        (stream,) = block.streams
        effort = np.where(np.isin(np.arange(6), (1, 2)), stream.effort, np.nan)
        last = watch.add(replace(block, streams=(replace(stream, effort=effort),)))
    mass = last.numbers[f"{LINK}.mass"]
    assert abs(mass.value - mass.in_force - 0.3) < 5 * mass.deviation


def test_less_coulomb_friction_does_not_leave_a_stribeck_effect_that_drives():
    law = Friction(2.0, 5.0, stribeck_torque=-5.0, stribeck_rate=0.02)
    in_force = with_parts(ARM, {}, dict.fromkeys(ARM.joint_names, law))
    robot = with_parts(working({f"{LINK}.mass": 2.0}), {}, dict.fromkeys(ARM.joint_names, law))
    robot = with_parts(robot, {}, {ARM.joint_names[3]: Friction(2.0, 2.0)})
    watch = Watch(in_force, LINK)
    for block in blocks(robot, BLOCKS + 1, seed=7):
        last = watch.add(block)
    name = ARM.joint_names[3]
    assert last.numbers[f"{name}.coulomb"].value < 4.0
    assert not [*watch.adopted().joint(name).friction.faults()]


def test_motion_near_rest_tells_little_about_friction():
    """It would be fitted to what the model does not have, here the Stribeck effect."""
    robot = changed(ARM, 3, by=0.0)
    links = [
        replace(link, joint=replace(link.joint, friction=replace(law, stribeck_torque=0.0)))
        if (law := link.joint.friction).stribeck_torque
        else link
        for link in robot.links
    ]
    watch = Watch(replace(robot, links=tuple(links)), LINK)
    for seed in range(4):
        numbers = watch.add(noisy(robot, seed, reach=0.02)).numbers
    changes = [
        abs(each.value - each.in_force) for name, each in numbers.items() if "viscous" in name
    ]
    assert max(changes) < 3.5


def test_velocities_that_are_as_late_as_the_efforts_are_used_as_in_identification():
    def missed(*fields):
        watch = Watch(ARM, LINK)
        for seed in range(2):
            (stream,) = noisy(ARM, seed).streams
            moved = {each: getattr(stream, each)[:-6] for each in fields}
            late = replace(stream.rows(slice(6, None)), **moved)
            estimate = watch.add(Recording("late by 60 ms", (late,)))
        return np.array([*estimate.missed.values()])

    assert (missed("velocity", "effort")[:5] < 0.8 * missed("effort")[:5]).all()
    assert missed("velocity") == pytest.approx(missed(), rel=0.1)


def test_gaps_do_not_make_more_blocks_of_one(watched):
    """Lost messages are no further evidence."""
    _, estimates = watched
    watch, proven = Watch(ARM, LINK), []
    for block in blocks(working(CHANGE), BLOCKS + 1):
        (stream,) = block.streams
        kept = np.ones(len(stream.time), dtype=bool)
        kept[160:170] = kept[330:340] = False
        last = watch.add(replace(block, streams=(stream.rows(kept),)))
        proven.append(last.proven)
    assert proven == [*(BLOCKS * [False]), True]
    for name, each in last.numbers.items():
        whole = estimates[BLOCKS].numbers[name]
        # the filter's transients at the gaps are left out, too
        assert 0.9 * whole.deviation < each.deviation < 2 * whole.deviation


def test_a_model_that_holds_is_never_replaced():
    watch = Watch(ARM, LINK)
    for block in blocks(ARM, 6, seed=2):
        assert not watch.add(block).proven
    with pytest.raises(InputError, match="not proven"):
        watch.adopted()
    assert watch.mechanism is ARM


def test_what_is_adopted_is_what_was_proven_and_survives_a_urdf():
    truth = working(CHANGE)
    watch = Watch(ARM, LINK)
    for block in blocks(truth, BLOCKS + 2, seed=3):
        watch.add(block)
    new = watch.adopted()
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1, 1, (3, 100, len(ARM.joint_names)))
    right = InverseDynamics(truth)(q, qd, qdd)
    before, after = (np.abs(InverseDynamics(each)(q, qd, qdd) - right).max() for each in (ARM, new))
    assert after < 0.1 * before
    from robot_dynamics.description.urdf_writer import urdf

    again = rd.load(urdf(new))
    assert np.allclose(
        InverseDynamics(again)(q, qd, qdd), InverseDynamics(new)(q, qd, qdd), rtol=1e-9
    )
    with pytest.raises(InputError, match="no motion has been recorded"):
        watch.adopted()  # the sums have started again
    for block in blocks(truth, BLOCKS + 2, seed=4):
        assert not watch.add(block).proven  # nothing is left to correct


def test_an_old_load_is_forgotten():
    watch = Watch(ARM, LINK, memory=10.0)
    for block in blocks(working(CHANGE), 4, seed=5):
        watch.add(block)
    for block in blocks(ARM, 12, seed=6):
        last = watch.add(block)
    mass = last.numbers[f"{LINK}.mass"]
    assert abs(mass.value - mass.in_force) < 0.1
    assert not last.proven


def test_a_load_that_is_picked_up_is_not_mixed_with_the_motion_before():
    watch = Watch(ARM, LINK)
    for block in [*blocks(ARM, 8, seed=9), *blocks(working(CHANGE), 2, seed=10)]:
        last = watch.add(block)
    mass = last.numbers[f"{LINK}.mass"]
    assert abs(mass.value - mass.in_force - 2.0) < 4 * mass.deviation < 0.1
    assert last.proven


def test_deviations_cover_noise_that_is_correlated_in_time():
    lfilter = pytest.importorskip("scipy.signal").lfilter
    misses = []
    for seed in range(8):
        watch, rng = Watch(ARM, LINK), np.random.default_rng(seed)
        for block in blocks(ARM, 2, seed=20 + seed):
            (stream,) = block.streams
            slow = lfilter([0.3], [1, -0.95], rng.normal(size=stream.effort.shape), axis=0)
            effort = stream.effort + 0.02 * stream.effort.std(axis=0) * slow
            last = watch.add(replace(block, streams=(replace(stream, effort=effort),)))
        misses += [(each.value - each.in_force) / each.deviation for each in last.numbers.values()]
    # twice within normal: bodies are pulled towards the description, which is the truth here
    assert (np.abs(misses) < 2).mean() > 0.954
    assert np.sqrt(np.mean(np.square(misses))) > 0.5
    assert np.abs(misses).max() < 5


def test_what_cannot_be_watched_is_one_line():
    with pytest.raises(InputError, match="gripper"):
        Watch(ARM, "gripper")
    with pytest.raises(InputError, match="memory"):
        Watch(ARM, LINK, memory=0.0)
    with pytest.raises(InputError, match="loops"):
        Watch(rd.load("config/five_bar.yaml"), "distal1")
    watch = Watch(ARM, LINK)
    with pytest.raises(InputError, match="no motion has been recorded"):
        watch.adopted()
    block = blocks(ARM, 1)[0]
    still = replace(block.streams[0], position=0 * block.streams[0].position)
    with pytest.raises(RecordingError):
        watch.add(Recording("still", (still,)))
    assert Inertial().is_nothing


def test_an_offset_is_told_and_proves_nothing():
    """URDF cannot express offsets: what would be adopted is evaluated without them."""
    joint = ARM.joint_names[1]
    links = tuple(
        replace(link, joint=replace(link.joint, friction=replace(link.joint.friction, offset=8.0)))
        if link.joint.name in ARM.joint_names
        else link
        for link in ARM.links
    )
    watch = Watch(ARM, LINK)
    for block in blocks(replace(ARM, links=links), BLOCKS + 2, seed=8):
        last = watch.add(block)
    assert abs(last.numbers[f"{joint}.offset"].value - 8.0) < 0.5
    assert not last.proven
