"""The commands of the store, for a writer process that is to kill itself at a step.

Importing this arms it: a writer process imports its handlers before it serves anybody.
"""

import os

from tests.support.crash_child import WRITER_STEP, Suicide

from armillary import steps
from armillary.store.commands import HANDLERS

__all__ = ["HANDLERS"]

_step, _, _passes = os.environ.get(WRITER_STEP, "").partition(" ")
if _step:
    steps.listen(Suicide(_step, int(_passes)))
