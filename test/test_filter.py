# SPDX-License-Identifier: Apache-2.0
"""The compiled zero-phase filter, and SciPy's where nothing is compiled."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import sosfiltfilt
from test_codegen_compiler import needs_compiler

from robot_dynamics.codegen import native
from robot_dynamics.errors import BackendError
from robot_dynamics.identification import zero_phase
from robot_dynamics.identification.zero_phase import both_ways, butterworth

PASSES = [(2, 0.1), (2, (0.2, 0.5), "band"), (4, 0.02), (4, 0.7), (6, 0.1)]
"""One section, two, and three, which C does not filter"""


@pytest.fixture
def compiled():
    """What `_compiled` finds anew, and finds anew afterwards."""
    zero_phase._compiled.cache_clear()
    yield zero_phase._compiled
    zero_phase._compiled.cache_clear()


def worst(design, rows, length, pad):
    """The largest deviation from SciPy's filter, relative to the signals."""
    x = np.random.default_rng(rows).normal(size=(rows, length)).cumsum(axis=1)
    x[::3] = np.sign(x[::3])
    kept = x.copy()
    found = both_ways(*butterworth(*design), pad, x)
    np.testing.assert_array_equal(x, kept)
    expected = sosfiltfilt(butterworth(*design)[0], x, axis=1, padlen=pad)
    return (np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max()


@needs_compiler
@pytest.mark.parametrize("design", PASSES)
def test_the_compiled_filter_is_scipys(design, compiled, monkeypatch):
    """Any number of signals of any length; no signal depends on those beside it."""
    monkeypatch.delenv(zero_phase.VARIABLE, raising=False)
    assert compiled() is not None
    for rows, length, pad in [(1, 2, 1), (3, 40, 9), (8, 64, 15), (17, 501, 30), (40, 230, 229)]:
        assert worst(design, rows, length, pad) < 1e-11
    x = np.random.default_rng(0).normal(size=(19, 203))
    whole = both_ways(*butterworth(*design), 12, x)
    alone = [both_ways(*butterworth(*design), 12, each[None])[0] for each in x]
    np.testing.assert_array_equal(whole, alone)


def test_scipy_filters_where_nothing_is_compiled(compiled, monkeypatch):
    def refused(name):
        raise BackendError("no C compiler", name="compiler")

    monkeypatch.setattr(native, "library", refused)
    monkeypatch.delenv(zero_phase.VARIABLE, raising=False)
    assert compiled() is None
    assert max(worst(design, 3, 203, 12) for design in PASSES) < 1e-11
    monkeypatch.undo()
    compiled.cache_clear()
    monkeypatch.setenv(zero_phase.VARIABLE, "python")
    assert compiled() is None


@needs_compiler
def test_a_library_of_ours_is_kept_in_the_cache(monkeypatch):
    native.library("filter")
    monkeypatch.setattr(native.compiler.Compiler, "shared_library", lambda *_: pytest.fail("built"))
    assert native.library("filter").both_ways
