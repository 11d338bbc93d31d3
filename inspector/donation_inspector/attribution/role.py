"""The classes of memory in the user's words."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A class of memory.

    The first ten are what values are for, OTHER is unknown. The last three are bytes that hold no value at the time:
    of arguments and of results, whose memory is taken for the whole call, and what lies between values.
    """

    PARAMETERS = "parameters"
    OPTIMIZER = "optimizer state"
    BATCH = "batch"
    ARGUMENTS = "other arguments"
    CONSTANTS = "constants"
    GRADIENTS = "gradients"
    ACTIVATIONS = "activations kept for the backward pass"
    COPIES = "copies made by aliasing"
    RESULTS = "results"
    TEMPORARIES = "other temporaries"
    OTHER = "other"
    IDLE_ARGUMENTS = "arguments no longer needed"
    IDLE_RESULTS = "results not yet written"
    PADDING = "padding"
