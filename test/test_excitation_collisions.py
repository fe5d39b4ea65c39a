# SPDX-License-Identifier: Apache-2.0
"""Exciting motions that keep bodies from colliding with each other and with a table."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest

import robot_dynamics as rd
from robot_dynamics.app import cli
from robot_dynamics.errors import BackendError, InputError
from robot_dynamics.identification import clearance, excitation
from robot_dynamics.identification.clearance import bodies_apart
from robot_dynamics.identification.excitation import excite
from robot_dynamics.identification.motion_limits import motion_limits

pytest.importorskip("scipy")
pytest.importorskip("coal", reason="coal is not installed: extra `collisions`")
pin = pytest.importorskip("pinocchio")

FINE = 8_001


def shape(inner: str, origin: str = "") -> str:
    return f"<collision>{origin}<geometry>{inner}</geometry></collision>"


def link(name: str, *shapes: str) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="0 0.02 0.15"/><mass value="2"/><inertia '
        f'ixx="0.02" iyy="0.03" izz="0.01" ixy="0" ixz="0.001" iyz="0"/></inertial>'
        f"{''.join(shapes)}</link>"
    )


def joint(name: str, parent: str, child: str, origin: str, axis: str) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{origin}"/><axis xyz="{axis}"/>'
        '<limit lower="-2.9" upper="2.9" effort="200" velocity="5"/></joint>'
    )


COLUMN = shape('<cylinder radius="0.06" length="0.3"/>', '<origin xyz="0 0 0.15"/>')
ARM = "".join(
    [
        '<robot name="arm">',
        link("foot", shape('<box size="0.3 0.3 0.2"/>', '<origin xyz="0 0 -0.1"/>')),
        link("column", COLUMN),
        link("upper", shape('<cylinder radius="0.05" length="0.3"/>', '<origin xyz="0 0 0.25"/>')),
        link("fore", shape('<sphere radius="0.06"/>', '<origin xyz="0 0 0.35" rpy="0 0.3 0"/>')),
        '<link name="tool">',
        shape('<box size="0.05 0.1 0.1"/>', '<origin xyz="0.05 0 0.05" rpy="0.2 0.1 0"/>'),
        "</link>",
        joint("pan", "foot", "column", "0 0 0.02", "0 0 1"),
        joint("lift", "column", "upper", "0 0 0.35", "0 1 0"),
        joint("elbow", "upper", "fore", "0 0 0.42", "0 1 0"),
        '<joint name="flange" type="fixed"><parent link="fore"/><child link="tool"/>'
        '<origin xyz="0 0 0.4" rpy="0 0 0.5"/></joint></robot>',
    ]
)  # fmt: skip


@pytest.fixture
def arm(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM)
    return file


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(excitation, "STAGES", ((3.0, 8), (300.0, 12)))
    monkeypatch.setattr(excitation, "STARTS", 6)


def distances(file, q, names) -> dict[str, float]:
    """m: Pinocchio's smallest distances between the named links over the postures."""
    model = pin.buildModelFromUrdf(str(file))
    solids = pin.buildGeomFromUrdf(model, str(file), pin.GeometryType.COLLISION)
    owner = [model.frames[each.parentFrame].name for each in solids.geometryObjects]
    for a, b in names:
        solids.addCollisionPair(pin.CollisionPair(owner.index(a), owner.index(b)))
    data, far = model.createData(), pin.GeometryData(solids)
    found = np.full(len(names), np.inf)
    for each in q:
        pin.computeDistances(model, data, solids, far, each)
        found = np.minimum(found, [result.min_distance for result in far.distanceResults])
    return dict(zip(names, found.tolist(), strict=True))


APART = [("foot", "upper"), ("foot", "fore"), ("foot", "tool"), ("column", "fore"),
         ("column", "tool")]  # fmt: skip


def height(file, q) -> float:
    """m: of the lowest point of what moves, by the shapes' own formulas."""
    dynamics, lowest = rd.InverseDynamics(rd.load(str(file)), backend="python"), np.inf

    def pose(link, xyz, rpy):
        where = dynamics.pose(q, link)
        R = where[:, :3, :3] @ pin.rpy.rpyToMatrix(*rpy)
        return (where[:, :3, :3] @ xyz + where[:, :3, 3])[:, 2], R[:, 2]

    for name, z in (("column", 0.15), ("upper", 0.25)):
        radius = {"column": 0.06, "upper": 0.05}[name]
        p, up = pose(name, [0, 0, z], (0, 0, 0))
        reach = 0.15 * np.abs(up[:, 2]) + radius * np.hypot(up[:, 0], up[:, 1])
        lowest = min(lowest, (p - reach).min())
    p, _ = pose("fore", [0, 0, 0.35], (0, 0.3, 0))
    lowest = min(lowest, (p - 0.06).min())
    p, up = pose("tool", [0.05, 0, 0.05], (0.2, 0.1, 0))
    return min(lowest, (p - np.abs(up) @ [0.025, 0.05, 0.05]).min())


@pytest.mark.usefixtures("quick")
def test_bodies_keep_from_each_other_and_from_a_table(arm):
    found = excite(str(arm), 6.0, table=-0.05, seed=1)
    q = found.motion(np.linspace(0.0, 6.0, FINE))[0]
    truth = distances(arm, q, APART)
    assert min(truth.values()) > 0.0
    assert height(arm, q) > -0.05
    # the reported value is the distance minus the clearance; a lower bound where it is large
    rooms = found.margins.rooms
    assert set(rooms) == {
        "foot from upper", "foot from fore", "column from fore",
        "column from the table", "upper from the table", "fore from the table",
    }  # fmt: skip
    for (a, b), distance in {
        ("foot", "upper"): truth["foot", "upper"],
        ("foot", "fore"): min(truth["foot", "fore"], truth["foot", "tool"]),
        ("column", "fore"): min(truth["column", "fore"], truth["column", "tool"]),
    }.items():
        room = rooms[f"{a} from {b}"] + excitation.CLEARANCE
        assert room <= distance + 2e-4
        assert room > min(distance, clearance.NEAR) - 2e-3
    lowest = min(room for name, room in rooms.items() if "table" in name)
    assert lowest + excitation.CLEARANCE == pytest.approx(height(arm, q) + 0.05, abs=2e-3)
    # without it, the same search collides
    free = excite(str(arm), 6.0, seed=1, collisions=False)
    q = free.motion(np.linspace(0.0, 6.0, 2001))[0]
    assert min(distances(arm, q, APART).values()) < -0.01 or height(arm, q) < -0.06
    assert "collisions are not checked" in free.notes
    assert not any("collision" in note for note in found.notes)


def design_of(file, **options):
    mechanism = rd.load(str(file))
    given = motion_limits(mechanism)
    design = excitation._Design(mechanism, given, given.within(0.1), (), 0)
    notes = design.keep_apart(str(file), options.pop("table", None), options.pop("srdf", None))
    return design, notes


def test_distances_are_pinocchios_and_their_slopes_are_theirs(arm):
    design, _ = design_of(arm, table=0.01)
    rng = np.random.default_rng(3)
    q = rng.uniform(-2.9, 2.9, (150, 3))
    room = dict(zip(map(str, design.regions), design.room(q), strict=True))
    checked = 0
    for k, each in enumerate(q):
        truth = distances(arm, [each], APART)
        fore = min(truth["column", "fore"], truth["column", "tool"])
        own = room["column from fore"][k]
        assert own <= fore + 1e-6
        if own < clearance.NEAR / 2 and fore > 0:
            assert own == pytest.approx(fore, abs=1e-6)
            checked += 1
    assert checked > 3
    # the gradient of the penalty, where it is smooth
    slope, h, seen = np.zeros_like(q), 1e-6, 0
    design._region_penalty(q, 1.0, slope)
    for k in range(len(q)):
        for j in range(3):
            sides = []
            for step in (h, -h):
                moved = q[k : k + 1].copy()
                moved[0, j] += step
                sides.append(design._region_penalty(moved, 1.0, np.zeros((1, 3))))
            change = (sides[0] - sides[1]) / (2 * h)
            if abs(change) > 0.1:
                assert slope[k, j] == pytest.approx(change, rel=0.02, abs=0.05)
                seen += 1
    assert seen > 20


def test_the_nearest_of_many_shapes_counts_wherever_it_stands():
    import coal

    turn, middle = np.eye(3), np.zeros(3)
    ball = clearance._Solid("a", coal.Sphere(0.1), turn, middle, middle, 0.1)

    def wall(gap):
        place = np.array([0.1 + gap + 0.01, 0.0, 0.0])
        return clearance._Solid("b", coal.Box(0.02, 2.0, 2.0), turn, place, place, 1.5)

    for gaps in permutations((0.05, 0.08, 0.02)):
        bodies = clearance.Apart(("a", "b"), tuple((ball, wall(gap)) for gap in gaps))
        assert bodies.nearest(lambda _: np.eye(4)[None]).room == pytest.approx([0.02])


def test_bodies_that_always_touch_and_disabled_pairs_are_left_out(arm, tmp_path):
    names = {str(each) for each in design_of(arm)[0].regions}
    assert names == {"foot from upper", "foot from fore", "column from fore"}
    srdf = tmp_path / "arm.srdf"
    srdf.write_text(
        '<robot name="arm"><disable_collisions link1="tool" link2="foot" reason="Never"/></robot>'
    )
    design, notes = design_of(arm, srdf=srdf)
    assert {str(each) for each in design.regions} == names - {"foot from fore"}
    assert notes == ()
    # a pair that touches in most postures, but not by design, is still checked
    arm.write_text(ARM.replace('radius="0.05" length="0.3"', 'radius="0.4" length="0.9"'))
    design, notes = design_of(arm)
    touching = design.room(design._postures)[
        [str(x) for x in design.regions].index("foot from upper")
    ]
    assert 0.5 < (touching < 0).mean() < 0.95
    # without its shape, the column joins its neighbours
    arm.write_text(ARM.replace(COLUMN, ""))
    assert {str(each) for each in design_of(arm)[0].regions} == {"foot from fore"}
    arm.write_text(ARM.replace('radius="0.05" length="0.3"', 'radius="2" length="3"'))
    design, notes = design_of(arm)
    assert {str(each) for each in design.regions} == names - {"foot from upper"}
    (note,) = notes
    assert note == "foot from upper is not checked: they touch in nearly all configurations"
    srdf.write_text('<robot name="arm"><disable_collisions link1="tool" link2="leg"/></robot>')
    with pytest.raises(InputError, match="leg"):
        design_of(arm, srdf=srdf)
    srdf.write_text("<robot")
    with pytest.raises(InputError, match=r"--srdf arm\.srdf"):
        design_of(arm, srdf=srdf)


def test_bodies_that_never_are_as_far_apart_as_the_clearance_are_left_out(tmp_path):
    """A wrist's links on both sides: 5 mm apart in every configuration."""
    file = tmp_path / "wrist.urdf"
    file.write_text(
        '<robot name="wrist">'
        + link("foot", shape('<cylinder radius="0.05" length="0.1"/>'))
        + link("stem", shape('<sphere radius="0.02"/>', '<origin xyz="0.5 0 0"/>'))
        + link("hub", shape('<cylinder radius="0.05" length="0.1"/>'))
        + joint("pan", "foot", "stem", "0 0 0.05", "0 0 1")
        + joint("roll", "stem", "hub", "0 0 0.055", "0 0 1")
        + "</robot>"
    )
    design, notes = design_of(file)
    assert design.regions == ()
    assert notes == (
        "foot from hub is not checked: they are less than 0.01 m apart in nearly all "
        "configurations",
    )


def test_a_mesh_counts_as_its_hull_even_a_flat_one(arm, tmp_path):
    trimesh = pytest.importorskip("trimesh", reason="trimesh is not installed: extra `meshes`")
    trimesh.creation.box((0.05, 0.1, 0.1)).export(tmp_path / "tool.stl")
    flat = trimesh.Trimesh([[0, 0, 0], [0.4, 0, 0], [0, 0.4, 0]], [[0, 1, 2]])
    flat.export(tmp_path / "flat.stl")
    q = np.random.default_rng(0).uniform(-2.5, 2.5, (40, 3))
    box = '<box size="0.05 0.1 0.1"/>'
    before = design_of(arm)[0].room(q)
    arm.write_text(ARM.replace(box, '<mesh filename="tool.stl"/>'))
    meshed, notes = design_of(arm)
    assert notes == ()
    # bounds by other spheres where they are far from each other
    near = before < clearance.NEAR / 2
    assert near.sum() > 5
    np.testing.assert_allclose(meshed.room(q)[near], before[near], atol=1e-6)
    arm.write_text(ARM.replace(box, '<mesh filename="flat.stl" scale="1 1 2"/>'))
    assert design_of(arm)[1] == ()
    for broken, word in (
        ('<mesh filename="nowhere.stl"/>', "nowhere.stl"),
        ('<sphere radius="0"/>', "a sphere of"),
        ('<box size="0.1 0.1 inf"/>', "not a number"),
    ):
        arm.write_text(ARM.replace(box, broken))
        (note,) = design_of(arm)[1]
        assert note.startswith("collisions not checked: tool: ")
        assert word in note


def test_the_shapes_of_a_xacro_are_those_of_its_urdf(arm):
    q = np.random.default_rng(0).uniform(-2.5, 2.5, (40, 3))
    made = arm.with_name("arm.urdf.xacro")
    made.write_text(
        ARM.replace(
            '<robot name="arm">',
            '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
            '<xacro:property name="r" value="0.06"/>',
        ).replace('<sphere radius="0.06"/>', '<sphere radius="${r}"/>')
    )
    design, notes = design_of(made, table=-0.1)
    assert notes == ()
    assert np.array_equal(design.room(q), design_of(arm, table=-0.1)[0].room(q))


def test_what_is_missing_is_said(arm, tmp_path, monkeypatch):
    bare = tmp_path / "bare.urdf"
    bare.write_text(ARM.replace("collision>", "visual>"))
    design, notes = design_of(bare)
    assert design.regions == ()
    assert notes == ("collisions not checked: no URDF with collision shapes",)
    # if a body cannot be kept from the table, this is refused, never left out
    with pytest.raises(InputError, match=r"--table: found 2\.0, expected a height that"):
        design_of(arm, table=2.0)
    with pytest.raises(InputError, match="--table: arm has no collision shapes; use --above LINK"):
        design_of(bare, table=0.0)
    with pytest.raises(InputError, match="table"):
        excite(str(arm), table=float("nan"))
    with pytest.raises(InputError, match="collisions"):
        excite(str(arm), table=0.0, collisions=False)
    monkeypatch.setattr(clearance, "find_spec", lambda _: None)
    design, (note,) = design_of(arm)
    assert design.regions == ()
    assert "pip install 'robot_dynamics[collisions]'" in note
    with pytest.raises(BackendError, match="Coal, which finds collisions, is missing"):
        design_of(arm, table=0.0)
    mechanism = rd.load(str(arm))
    poses = rd.InverseDynamics(mechanism, backend="python").pose
    assert bodies_apart(mechanism, "", poses, np.zeros((1, 3)))[0] == ()


def test_the_command_prints_the_smallest_distances(arm, tmp_path, capsys, quick):
    out = str(tmp_path / "motion.yaml")
    options = ["--duration", "3", "--table", "-0.1", "--out", out]
    assert cli.main(["excite", str(arm), *options]) == 0
    text = capsys.readouterr().out
    assert "from the table: at least " in text
    assert "1 more are farther apart" in text
    assert cli.main(["excite", str(arm), *options, "--no-collisions"]) == 1
    assert cli.main(["excite", str(arm), *options, "--json"]) == 0
    rooms = json.loads(capsys.readouterr().out)["clearances"]
    assert len(rooms) == 6
    assert min(rooms.values()) >= 0.0
