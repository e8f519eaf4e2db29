"""Protected queries: a frame of them, and a decision for each by what a course learnt."""

import numpy as np
from numpy.typing import NDArray

from noisefloor.errors import BadFrame, BadParameter, NotLearnt
from noisefloor.roles.courses import Course
from noisefloor.wire.frames import decode_frame

MOST_QUERIES = 4096
"""Of one frame: whoever has more sends several."""


def answer(course: Course, content: bytes, data: bytes) -> NDArray[np.bool_]:
    """Return a decision for each query of a frame, in the order of its rows.

    A query is protected before it is sent, as a report is; nothing is kept of it. A frame of
    another kind raises BadFrame; before the last round is closed, any raises NotLearnt.
    """
    kind = course.query_kind
    if kind is None:
        raise BadParameter("course", type(course).__name__, "one that answers queries")
    if course.round_of(content) < course.rounds:
        raise NotLearnt("The last round is not closed yet: there is nothing to answer by.")
    queries = decode_frame(data, {kind.name: kind}).batch
    if queries.num_rows > MOST_QUERIES:
        raise BadFrame("batch", f"has more than {MOST_QUERIES} rows")
    return course.answers(content, queries)
