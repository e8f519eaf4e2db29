"""Every course that a server may be asked for, listed in one place, as plain data.

A course is a frozen value whose parameters are public, so server and devices can agree on one by
a description: ``{"method": "bits", "ads": 20, ...}``. What is not written here does not exist.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from noisefloor.collection.course import RecordCourse
from noisefloor.collection.course_parts import RECORD_METHODS
from noisefloor.errors import BadParameter
from noisefloor.roles.ad_course import AdCourse
from noisefloor.roles.courses import Course
from noisefloor.roles.trainings import AD_TRAININGS, training_description, training_of

Description = Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class Family:
    """Courses of one type.

    Attributes:
        methods: The names by which they are asked for.
        type: Of the course.
        read: Makes the course of a description; raises BadParameter.
        tell: Describes a course of the type as plain data that ``read`` reads.
    """

    methods: tuple[str, ...]
    type: type[Course]
    read: Callable[[Description], Course]
    tell: Callable[[Any], dict[str, Any]]  # Any: a course of the type; JSON


FAMILIES: tuple[Family, ...] = (
    Family(
        tuple(AD_TRAININGS),
        AdCourse,
        lambda told: AdCourse(training_of(told)),
        lambda course: training_description(course.training),
    ),
    Family(RECORD_METHODS, RecordCourse, RecordCourse.of_json, RecordCourse.as_json),
)


def course_of(told: Description) -> Course:
    """Make the course that was asked for."""
    methods = {name: family for family in FAMILIES for name in family.methods}
    method = told.get("method")
    if method not in methods:
        raise BadParameter("method", method, f"one of {', '.join(methods)}")
    return methods[method].read(told)


def task_description(course: Course) -> dict[str, Any]:  # Any: JSON
    """Describe a course as plain data that ``course_of`` reads."""
    for family in FAMILIES:
        if isinstance(course, family.type):
            return family.tell(course)
    raise BadParameter("course", type(course).__name__, "one that is listed")
