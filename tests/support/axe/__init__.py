"""axe-core, which finds faults of accessibility in a page that a browser shows.

package.json        axe-core
package-lock.json   its checksum
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.npm_packages import npm_packages

if TYPE_CHECKING:
    from playwright.sync_api import Page

GRAVE = ("serious", "critical")
RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
  rule => [rule.impact, rule.id, rule.nodes.length, rule.nodes[0].html.slice(0, 200), rule.nodes[0].failureSummary])"""


def axe_script() -> Path:
    """Path of the script. Raises `NoPackages`."""
    return npm_packages("axe", Path(__file__).parent, "axe-core/axe.min.js")


def grave_faults(page: Page, script: Path) -> list[list[str]]:
    """Serious and critical faults of a page: impact, rule, number of elements, the first element, what is wrong.

    The page must allow scripts of others, because its own Content-Security-Policy forbids them.
    """
    page.add_script_tag(path=script)
    return [fault for fault in page.evaluate(RUN) if fault[0] in GRAVE]
