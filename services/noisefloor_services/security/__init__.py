"""Who may do what, how much of it, and what is never let in or out.

``credentials`` and ``policy`` say who may do what, ``guard`` enforces it before every route,
``rate_limit`` and ``body_limits`` say how much, ``report_tokens`` admits each report once,
``error_bodies`` keeps input out of answers, ``secure_start`` keeps seeds out of services, and
``acl`` gives each service its own user on the Redis server.
"""

from noisefloor_services.security.acl import store_users, write_acl_file
from noisefloor_services.security.credentials import BadCredentials, Credential, Credentials, Role
from noisefloor_services.security.rate_limit import RateLimit, retry_after
from noisefloor_services.security.secret_files import make_secrets
from noisefloor_services.security.secure_start import (
    check_environment,
    check_settings,
    check_source,
    secure_source,
)

__all__ = [
    "BadCredentials",
    "Credential",
    "Credentials",
    "RateLimit",
    "Role",
    "check_environment",
    "check_settings",
    "check_source",
    "make_secrets",
    "retry_after",
    "secure_source",
    "store_users",
    "write_acl_file",
]
