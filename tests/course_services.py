"""The services as a program that knows the courses of tests."""

import sys

from course_cases import FAMILIES
from noisefloor.roles import course_list
from noisefloor_services.__main__ import main

if __name__ == "__main__":
    course_list.FAMILIES = (*course_list.FAMILIES, *FAMILIES)
    sys.exit(main())
