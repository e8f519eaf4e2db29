"""What devices ask of the ad server and what it answers, as JSON; unknown fields are refused."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from noisefloor.wire.frames import MOST_EPOCH

MOST_SLATE = 256
MOST_TOKENS = 1000
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1

Whole = Annotated[int, Field(ge=_LEAST, le=_MOST)]
Word = Annotated[str, Field(max_length=1 << 14)]
Row = Annotated[list[Whole], Field(max_length=1 << 16)]
Epoch = Annotated[int, Field(ge=0, le=MOST_EPOCH)]
Index = Annotated[int, Field(ge=0, lt=1 << 20)]


_EITHER: dict[str, Any] = {  # Any: JSON
    "oneOf": [
        {
            "required": [one],
            "properties": {one: {"not": {"type": "null"}}, other: {"type": "null"}},
        }
        for one, other in (("index", "slate"), ("slate", "index"))
    ]
}


class AdRequest(BaseModel):
    """One ad by its index, or a slate of ads of which the device shows what it likes."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_EITHER)

    epoch: Epoch = 0
    index: Index | None = None
    slate: Annotated[list[Index], Field(min_length=1, max_length=MOST_SLATE)] | None = None


class SingleReport(BaseModel):
    """One report: the value of a kind's only column, or an object of its columns."""

    model_config = ConfigDict(extra="forbid", strict=True)

    epoch: Epoch
    report: Whole | Row | Word | dict[Word, Whole | Row | Word]


class CatalogueAd(BaseModel):
    """One ad of the catalogue and its index there."""

    index: int
    ad_id: str
    topic: int
    price_floor_micros: int


class AdResponse(BaseModel):
    """The ads that were requested, in the order in which they were."""

    catalogue_version: int
    ads: list[CatalogueAd]


class TokenRequest(BaseModel):
    """The number of one-use tokens requested."""

    model_config = ConfigDict(extra="forbid", strict=True)

    count: Annotated[int, Field(ge=1, le=MOST_TOKENS)]
