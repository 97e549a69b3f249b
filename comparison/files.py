"""The report as files for other programs: CSV for a spreadsheet, JUnit XML for a build server."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from xml.etree import ElementTree

from comparison.report import ArmResult, rows
from comparison.verdicts import Outcome

_TAGS = {Outcome.FAIL: "failure", Outcome.UNKNOWN: "error", Outcome.NOT_PROMISED: "skipped"}


def to_csv(results: Sequence[ArmResult]) -> str:
    """The side-by-side table, a line for each figure; `comparison.figures` says what is in it."""
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(["section", "row", "arm", "value", "low", "high", "n", "text"])
    for row in rows(results):
        for result, figure in zip(results, row.figures, strict=True):
            numbers = (figure.value, figure.low, figure.high, figure.n)
            writer.writerow([row.section, row.label.strip(), result.arm, *numbers, figure.text])
    return sheet.getvalue()


def to_junit(results: Sequence[ArmResult]) -> str:
    """A suite for each arm, a case for each verdict. Unknown is an error: it is no success.

    What an arm never promised is a test that was skipped. The table is in the suite's properties.
    """
    suites = ElementTree.Element("testsuites")
    table = rows(results)
    for number, result in enumerate(results):
        suite = ElementTree.SubElement(
            suites, "testsuite", name=result.arm, tests=str(len(result.verdicts))
        )
        properties = ElementTree.SubElement(suite, "properties")
        for row in table:
            name = f"{row.section}: {row.label.strip()}"
            ElementTree.SubElement(properties, "property", name=name, value=row.cells[number])
        for verdict in result.verdicts:
            case = ElementTree.SubElement(
                suite, "testcase", classname=result.arm, name=verdict.invariant
            )
            if verdict.outcome is not Outcome.PASS:
                found = ElementTree.SubElement(case, _TAGS[verdict.outcome], message=verdict.detail)
                found.text = "\n".join(verdict.violations)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"
