"""A pipeline that exists in tests only, and scenarios that use it."""

from typing import ClassVar, Literal

from pydantic import Field

from noisefloor.errors import BadScenario
from noisefloor_sim.scenario import Attack, Attacks, Blocks, PipelineBlock, Scenario, loads

MINIMAL = """\
name: minimal
question: What is this epsilon worth?
seed: 7
pipelines:
  toy: {epsilon: 1}
"""

FULL = """\
# yaml-language-server: $schema=../scenario.schema.json
name: full
question: >
  What is this epsilon worth,
  and to whom?
expectation: |
  Less than it says.
  Four times as much is proved.
seed: 7
days: 3
variant: paper
population:
  users: 20000
  cohort: 512
  topics: 8
  interests_concentration: 0.5
  engagement: {mean_views_per_day: 10, tail_exponent: 2.2}
  churn_per_day: 1e-3
devices:
  shares: {phone: 0.9, laptop: 0.5, wearable: 0.1}
  sync_per_day: 0.8
  offline: {start_per_day: 0.1, mean_h: 6}
behaviour:
  ads: 20
  slots_per_view: 3
  popularity: 0.8
  peak_hours: [8, 20.5]
  weekend_factor: 1.5
  click_base_rate: 0.03
  interest_lift: 5
  position_decay: 0.6
network:
  latency: {median_s: 0.1, spread: 0.4}
  loss: 0.02
  duplicate: 0.01
  reorder: 0.05
  retries: 4
  retry_after_s: 30
  outages:
    - {start_h: 5, end_h: 6.5}
    - {start_h: 30, end_h: 31}
  capacity_frames_per_s: 500
grace_h: 12
pipelines:
  toy: {epsilon: 2, form: plain, bounds: [0, 1]}
attacks:
  - toy.guess
  - toy.vote
threat: {linked: false}
sweep:
  seeds: 2
  pipelines.toy.epsilon: [0.5, 1, 2]
  variant: [paper, corrected]
gates:
  - toy.rmse < 0.05 where variant == corrected and pipelines.toy.epsilon >= 1
  - claims.* holds where variant == corrected
  - claims.toy.audited <= proved
"""


class Toy(PipelineBlock):
    """Settings of a pipeline that does nothing."""

    needs_ads: ClassVar[bool] = True
    attacks: ClassVar[Attacks] = {"guess": Attack("a bit"), "vote": Attack("a bit, over days")}

    epsilon: float = Field(gt=0, le=40, description="Of one report.")
    form: Literal["oue", "plain"] = Field(default="oue", description="Which response.")
    bounds: tuple[float, ...] = Field(default=(), description="Of values.")
    note: str = Field(default="", description="Anything.")
    spare: int | None = Field(default=None, description="A number or nothing.")


BLOCKS: Blocks = {"toy": Toy}


def scenario(text: str = MINIMAL, *more: str) -> Scenario:
    """Read a scenario of these lines."""
    return loads("".join([text, *(f"{line}\n" for line in more)]), BLOCKS, "s.yaml")


def complaint(text: str, *more: str) -> str:
    """Return what is said of a bad scenario of these lines."""
    try:
        scenario(text, *more)
    except BadScenario as error:
        return str(error)
    raise AssertionError("nothing was said")
