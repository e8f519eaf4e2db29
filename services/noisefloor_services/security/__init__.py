"""Who may do what, how much of it, and what is never let in or out.

``credentials`` and ``policy`` say who may do what, ``guard`` enforces it before every route,
``rate_limit`` and ``body_limits`` say how much, ``report_tokens`` admits each report once,
``error_bodies`` keeps input out of answers, ``secure_start`` keeps seeds out of services, and
``acl`` gives each service its own user on the Redis server.
"""
