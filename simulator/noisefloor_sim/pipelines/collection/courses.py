"""The course that a scenario asks for."""

from noisefloor.collection.course import RecordCourse
from noisefloor_sim.pipelines.collection.block import block_of
from noisefloor_sim.pipelines.collection.held import Holdings
from noisefloor_sim.scenario.model import Scenario


def course_of(scenario: Scenario, holdings: Holdings) -> RecordCourse:
    """Return the course; its sizes follow from public figures where none are given."""
    block = block_of(scenario)
    return RecordCourse(
        holdings.schema,
        block.epsilon,
        holdings.owners,
        block.method,
        attributes=block.attributes,
        classes=block.classes,
        selection=block.selection,
        form=block.form,
        classifier=block.classifier,
        weight=block.weight,
        variant=scenario.variant,
        queries="protected" if block.questions == "protected" else "on-device",
        seed=scenario.seed,
    )
