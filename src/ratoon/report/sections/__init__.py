"""The sections of the page.

A section is a module with a function ``build(context)``.  It returns what its template
``templates/sections/NAME.html`` shows, under the name ``s``, or None to leave the section out.
To add one, write both files and name it in `SECTIONS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ratoon.report.context import ReportContext


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Parameters
    ----------
    name : str
        Module in this package, template, and anchor on the page.
    title : str
        Heading.
    folded : bool
        Whether the section is closed until the reader opens it.
    """

    name: str
    title: str
    folded: bool = False

    @property
    def template(self) -> str:
        """Path of the template."""
        return f"sections/{self.name}.html"

    def build(self, context: ReportContext) -> Any:
        """Return what the template shows, or None to leave the section out."""
        return import_module(f"{__name__}.{self.name}").build(context)


SECTIONS = (
    Section("confusion", "Confusion matrix"),
    Section("numbers", "Predicted and true"),
    Section("survival", "Survival by predicted risk"),
    Section("curves", "Curves"),
    Section("samples", "Samples"),
    Section("why", "Why these predictions"),
    Section("genes", "Strongest features"),
    Section("pathways", "Gene sets"),
    Section("heatmap", "Heat map"),
    Section("maps", "Maps of the samples"),
    Section("data", "Data", folded=True),
    Section("network", "Network", folded=True),
    Section("learning", "Learning", folded=True),
    Section("degrees", "Degrees", folded=True),
    Section("timing", "Time", folded=True),
    Section("repeat", "How to repeat it"),
)
"""All sections, in the order of the page."""


def built(context: ReportContext) -> list[tuple[Section, Any]]:
    """Return the sections that have something to show, with their content."""
    found = [(section, section.build(context)) for section in SECTIONS]
    return [(section, content) for section, content in found if content is not None]
