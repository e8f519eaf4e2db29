"""The services as a program that knows the courses of tests."""

import sys

from noisefloor.tasks import task_registry
from noisefloor_services.__main__ import main
from task_cases import FAMILIES

if __name__ == "__main__":
    task_registry.TASK_FAMILIES = (*task_registry.TASK_FAMILIES, *FAMILIES)
    sys.exit(main())
