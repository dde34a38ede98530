"""Why something is another one on each rank by its nature, and not since each rank has samples of its own: the words of such origins.

Whatever else differs and comes from the batches of a loader is made of a rank's part of them, whichever operation it differs since.
"""

from __future__ import annotations

CLOCK, OF_PROCESS, ADDRESS = "a clock", "a number of the process", "a hash or an address of the process"
TEMPORARY, OF_RUN = "a temporary name", "the name of a run"
MAIN_PATH, MAIN_ALONE, MAIN_SETTINGS = "rank 0's path", "rank 0 alone", "settings that rank 0 alone has"
FOLDER = "a folder that is there"
OWN_TURN = "the rank's own turn"
#: since what a value differs that is made of a draw of random numbers
DRAW = "a draw of each rank's own"
DRAW_FOR_SAMPLES = f"{DRAW} for the samples"
#: since when what a model gives differs between ranks that gave it the same
OWN_STATISTICS = "running statistics of the rank's own"

BY_NATURE = frozenset({
    CLOCK, OF_PROCESS, ADDRESS, TEMPORARY, OF_RUN, MAIN_PATH, MAIN_ALONE, MAIN_SETTINGS, FOLDER, OWN_TURN, DRAW, DRAW_FOR_SAMPLES, OWN_STATISTICS,
})  # fmt: skip
