"""Every public mechanism says in its docstring what it guarantees, to whom, and on whose word."""

import importlib
import inspect
import pkgutil
import re

import pytest

import noisefloor.collection
import noisefloor.mechanisms

LABELS = ("Guarantee", "Neighbours", "Domain", "Reference")


def mechanism_classes() -> list[type]:
    """Return the public classes of the packages that randomise, but for protocols."""
    found = []
    for package in (noisefloor.mechanisms, noisefloor.collection):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            name = module.name
            for _, member in inspect.getmembers(importlib.import_module(name), inspect.isclass):
                is_own = member.__module__ == name and not member.__name__.startswith("_")
                if is_own and hasattr(member, "randomise") and hasattr(member, "guarantee"):
                    found.append(member)
    return [one for one in found if not getattr(one, "_is_protocol", False)]


def missing_labels(member: type) -> list[str]:
    """Return the labels without a line of their own, with text, in the docstring."""
    text = inspect.getdoc(member) or ""
    return [label for label in LABELS if not re.search(rf"^{label}: +\S", text, re.MULTILINE)]


def test_the_mechanisms_are_found() -> None:
    names = {member.__name__ for member in mechanism_classes()}
    assert {"BinaryResponse", "NoisyMax", "PrintedBinning", "UnifiedResponse"} <= names
    assert len(names) >= 18
    assert "Mechanism" not in names


@pytest.mark.parametrize("member", mechanism_classes(), ids=lambda member: member.__name__)
def test_a_mechanism_states_guarantee_neighbours_domain_and_reference(member: type) -> None:
    assert missing_labels(member) == []


@pytest.mark.parametrize("member", mechanism_classes(), ids=lambda member: member.__name__)
def test_the_labels_stand_in_order(member: type) -> None:
    text = inspect.getdoc(member) or ""
    places = [text.index(f"{label}:") for label in LABELS]
    assert places == sorted(places)


def test_a_class_without_the_labels_is_caught() -> None:
    class Unlabelled:
        """Randomise, and say nothing. Guarantee: within a sentence it does not count."""

    class HalfLabelled:
        """Randomise.

        Guarantee:  none.
        Domain:
        Reference:  nobody.
        """

    assert missing_labels(Unlabelled) == list(LABELS)
    assert missing_labels(HalfLabelled) == ["Neighbours", "Domain"]
