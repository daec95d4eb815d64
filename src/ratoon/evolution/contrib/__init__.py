"""Methods that are published and tested, and rarely used.

To be here, a method needs a publication, an entry in the contract suite (strategies are tested
there as soon as they are registered), a test against a dense NumPy implementation or an example
worked out by hand, and a page in ``docs/methods``.  Time and memory must follow the number of
connections.

To move up to `ratoon.evolution`, a method must be what the library or its documentation
recommends for some kind of data, with the figures to show it.  One that no longer passes the
contract suite is removed after a version with a deprecation warning.

Import the methods from `ratoon.evolution`; the modules in this package may change.
"""

from __future__ import annotations
