"""What tests expect of a page in the browser. Playwright is loaded when the first of them runs: its import takes
longer than that of any other package, and a run without the `slow` tests needs none of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Locator, LocatorAssertions, Page


def expect(place: Locator) -> LocatorAssertions:
    from playwright.sync_api import expect as expect_of  # noqa: PLC0415

    return expect_of(place)


def expect_accessible(page: Page) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
