"""Where running services are, and the token that closes their epochs."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Addresses:
    """What a run has to know of a running topology.

    Attributes:
        ad_server: Its address, ``http://host:port``.
        aggregator: Likewise.
        token: Of a credential with the roles read and admin; never shown.
        admin_token: Of a credential with the role admin, if that is another; never shown.
    """

    ad_server: str
    aggregator: str
    token: str = field(repr=False)
    admin_token: str = field(default="", repr=False)
