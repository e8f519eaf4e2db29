"""Credentials, rate limits, users of the Redis server, secret files, and the refusal of seeds."""

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
