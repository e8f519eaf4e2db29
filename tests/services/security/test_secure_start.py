"""A service takes no seed, whichever way it comes; and the secure source passes."""

import os
import types
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from noisefloor import randomness
from noisefloor.randomness import SecureSource, SeededSource, Words
from noisefloor_services.security.secure_start import (
    InsecureStart,
    check_environment,
    check_source,
    secure_source,
)
from noisefloor_services.settings import Settings


def test_the_secure_source_passes() -> None:
    made = secure_source({"PATH": "x", "NOISEFLOOR_PORT": "1"}, Settings())
    assert type(made) is SecureSource
    given = SecureSource()
    assert secure_source({}, Settings(), given) is given


@pytest.mark.parametrize(
    "name",
    [
        "NOISEFLOOR_SEED",
        "NOISEFLOOR_DEBUG",
        "NOISEFLOOR_NOISE_SEED",
        "NOISEFLOOR_SEED_FILE",
        "noisefloor_seed",
        "NOISEFLOOR_RANDOM_STATE",
        "NOISEFLOOR_DETERMINISTIC",
    ],
)
@pytest.mark.parametrize("value", ["1", "0", ""])
def test_way_1_the_environment(name: str, value: str) -> None:
    with pytest.raises(InsecureStart, match=name):
        secure_source({name: value}, Settings())


def test_other_variables_are_no_seeds() -> None:
    check_environment({"PYTHONHASHSEED": "0", "SEEDLING": "1", "NOISEFLOOR_SEEDLING": "1"})


@dataclass(frozen=True)
class Smuggled:
    port: int = 1
    seed: int | None = None
    debug: bool | None = None
    source: object = None


def test_way_2_the_settings() -> None:
    secure_source({}, Smuggled())
    for smuggled in (
        Smuggled(seed=0),
        Smuggled(debug=True),
        Smuggled(source=SeededSource(1, "noise")),
        types.SimpleNamespace(noise_seed=7),
    ):
        with pytest.raises(InsecureStart):
            secure_source({}, smuggled)


def test_way_3_a_seeded_source() -> None:
    seeded = SeededSource(1, "noise")
    with pytest.raises(InsecureStart, match="SeededSource"):
        secure_source({}, Settings(), seeded)
    with pytest.raises(InsecureStart, match="Generator"):
        secure_source({}, Settings(), seeded.generator())  # type: ignore[arg-type]  # on purpose


def test_way_4_a_subclass() -> None:
    class Known(SecureSource):
        def words(self, count: int) -> Words:
            return np.zeros(count, dtype=np.uint64)

    class Renamed(SecureSource):
        pass

    class Duck:
        def words(self, count: int) -> Words:
            return np.zeros(count, dtype=np.uint64)

    Renamed.__name__ = Renamed.__qualname__ = "SecureSource"
    Duck.__name__ = Duck.__qualname__ = "SecureSource"
    for source in (Known(), Renamed(), Duck()):
        with pytest.raises(InsecureStart):
            secure_source({}, Settings(), source)  # type: ignore[arg-type]  # on purpose


def zeros(self: SecureSource, count: int) -> Words:
    return np.zeros(count, dtype=np.uint64)


def replace_words(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SecureSource, "words", zeros)


def replace_inherited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(randomness.Source, "bernoulli", lambda *_: np.zeros(1))


def shadow_inherited(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SecureSource, "bernoulli", lambda *_: np.zeros(1), raising=False)


def replace_code(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SecureSource.words, "__code__", zeros.__code__)


def replace_class(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(randomness, "SecureSource", type("SecureSource", (SecureSource,), {}))


def replace_entropy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "urandom", lambda count: bytes(count))


def replace_module(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(randomness.secure, "os", types.SimpleNamespace(urandom=bytes, getpid=os.getpid))


@pytest.mark.parametrize(
    "change",
    [
        replace_words,
        replace_inherited,
        shadow_inherited,
        replace_code,
        replace_class,
        replace_entropy,
        replace_module,
    ],
)
def test_way_5_a_changed_secure_source(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None]
) -> None:
    source = SecureSource()
    check_source(source)
    with monkeypatch.context() as patch:
        change(patch)
        with pytest.raises(InsecureStart):
            secure_source({}, Settings(), source)
    check_source(source)


def forked(draw: Callable[[], bytes]) -> list[bytes]:
    """Return what two processes draw that were forked from this one, and what it draws itself."""
    reading, writing = os.pipe()
    for _ in range(2):
        child = os.fork()
        if not child:
            os.write(writing, draw())
            os._exit(0)
        os.waitpid(child, 0)
    drawn = [os.read(reading, 32), os.read(reading, 32), draw()]
    os.close(reading)
    os.close(writing)
    return drawn


def test_two_forks_never_share_randomness() -> None:
    source = secure_source({}, Settings())
    mine = [source.words(4).tobytes()]
    mine += forked(lambda: source.words(4).tobytes())
    mine += forked(lambda: source.stage("noise").words(4).tobytes())
    assert {len(one) for one in mine} == {32}
    assert len(set(mine)) == 7


def test_two_forks_of_a_generator_would_have_shared_them() -> None:
    generator = SeededSource(1, "noise").generator()
    generator.bytes(32)
    assert len(set(forked(lambda: generator.bytes(32)))) == 1
