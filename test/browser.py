# SPDX-License-Identifier: Apache-2.0
"""A page in a real, headless Chromium."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,900",
)
SOFTWARE_GL = ("--enable-unsafe-swiftshader", "--use-gl=angle", "--use-angle=swiftshader")


@contextmanager
def chromium(*, webgl: bool = True) -> Iterator[Any]:
    """A driver; the test is skipped, saying why, where there is no browser."""
    selenium = pytest.importorskip("selenium", reason="selenium is not installed: extra `dev`")
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    assert selenium
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    chauffeur = shutil.which("chromedriver")
    if browser is None or chauffeur is None:
        pytest.skip("no Chromium with its driver: install `chromium` and `chromium-driver`")
    from selenium import webdriver

    options = Options()
    options.binary_location = browser
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = (*FLAGS, *(SOFTWARE_GL if webgl else ("--disable-gpu", "--disable-3d-apis")))
        for flag in (*flags, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(chauffeur))
        driver.set_script_timeout(60)
        try:
            yield driver
        finally:
            driver.quit()


def opened(driver: Any, page: Path) -> Any:
    """The driver with the page in it, which has computed its first state."""
    driver.get(page.resolve().as_uri())
    return driver


def complaints(driver: Any) -> list[str]:
    """What the page's console says of errors."""
    return [each["message"] for each in driver.get_log("browser") if each["level"] == "SEVERE"]
