"""What is claimed, proved and audited: of one parameter, of one release, of all releases."""

from collections.abc import Sequence

from noisefloor.accounting import sequential
from noisefloor.privacy import Claim
from noisefloor.publication.model_methods import ModelPlan
from noisefloor_sim.pipelines.base import NamedClaim
from noisefloor_sim.pipelines.models.canary_games import CanaryGames

RELEASE, PARAMETER, EVERY, MEMBERS = "release", "parameter", "all_releases", "members"
_WHOLE = "whole model"


def claims_of(
    plans: Sequence[ModelPlan], games: CanaryGames | None, members: Claim | None
) -> tuple[NamedClaim, ...]:
    """Return the claims of a world.

    Args:
        plans: Of the releases that were made.
        games: What canaries gave, where the method has one.
        members: Of a small release, audited by shadow models.
    """
    first = plans[0]
    one = games.one.audited(first.proved.delta) if games else None
    rows = [NamedClaim(RELEASE, Claim(first.wanted.cost, first.proved, one))]
    rows += [NamedClaim(PARAMETER, part.claim) for part in first.claims if part.about != _WHOLE]
    if len(plans) > 1:
        claimed = sequential([plan.wanted.cost for plan in plans])
        proved = sequential([plan.proved for plan in plans])
        every = games.every.audited(proved.delta) if games else None
        rows.append(NamedClaim(EVERY, Claim(claimed, proved, every)))
    if members is not None:
        rows.append(NamedClaim(MEMBERS, members))
    return tuple(rows)
