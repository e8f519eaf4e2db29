"""What stands in paths: names of kinds and numbers of epochs, each with its rule."""

from typing import Annotated

from fastapi import Path

from noisefloor.wire.frames import MOST_EPOCH

KindName = Annotated[
    str, Path(pattern=r"^[a-z][a-z0-9-]{0,31}$", description="Name of a kind of report.")
]
EpochNumber = Annotated[int, Path(ge=0, le=MOST_EPOCH)]
