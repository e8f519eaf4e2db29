"""What a module carries from one forward pass to the next, and how it is put back.

Noise is added to sums of gradients alone. Whatever else a forward pass changes (a running mean, a
renormalised table, a list of activations) would be released without noise, and would let the
examples of one step act on the gradients of the next one. So after every pass everything is put
back as it was when the training began, and trained weights as they were when the step began.

Guarded are trained and frozen parameters, buffers (also those that are not saved), and tensors,
arrays and plain values in the attributes of modules and in lists, sets, dictionaries and objects
below them. Not guarded, since nothing finds it: what closures, class attributes, global
variables, objects of compiled code or files remember.
"""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from noisefloor.publication.private_sgd.parameters import FlatParameters

_MACHINERY = (frozenset(vars(nn.Module())) - {"training"}) | {"forward"}
"""Attributes that torch itself keeps in every module; ``forward`` is where a tap stands in."""

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.Size)
_DEEPEST = 4
"""Levels of lists, dictionaries and objects below a module that are looked at."""


class _Container(NamedTuple):
    """Something with entries that may be replaced, added or removed."""

    name: str
    entries: Any  # Any: a dictionary, list, set or deque of anything
    kept: Any
    machinery: frozenset[str]

    def now(self) -> Any:
        return _copied(self.entries, self.machinery)

    def put_back(self) -> None:
        if isinstance(self.entries, list):
            self.entries[:] = self.kept
        elif isinstance(self.entries, dict):
            for key in self.now():
                del self.entries[key]
            self.entries.update(self.kept)
        else:
            self.entries.clear()
            add = self.entries.update if isinstance(self.entries, set) else self.entries.extend
            add(self.kept)


class _Array(NamedTuple):
    """Numbers that may be written over."""

    name: str
    numbers: Any  # Any: a tensor or an array of numpy
    kept: Any

    def put_back(self) -> None:
        if isinstance(self.numbers, Tensor) and self.numbers.shape == self.kept.shape:
            self.numbers.data.copy_(self.kept)  # by ``data``: backward passes do not object
        elif isinstance(self.numbers, Tensor):
            self.numbers.data = self.kept.clone()
        else:
            np.copyto(self.numbers, self.kept)


class ModuleState:
    """Everything that modules carry along, as it was when this was made.

    Args:
        modules: The module, and the loss if it is one.
        flat: The trained parameters.
    """

    def __init__(self, modules: Sequence[nn.Module], flat: FlatParameters) -> None:
        self._flat = flat
        self._weights = torch.empty_like(flat.vector)
        self._containers: list[_Container] = []
        self._arrays: list[_Array] = []
        self._seen = {id(one) for one in flat.parameters}
        for module in modules:
            self._look("", module, 0)
        # Views of dictionaries follow them: after a pass one run over all entries is enough.
        self._entries = [
            one.entries.values() if isinstance(one.entries, dict) else one.entries
            for one in self._containers
        ]
        self._kept_identities = self._identities()

    @contextmanager
    def preserved(self) -> Iterator[None]:
        """Put everything back at the end, weights as they are at the start."""
        self._weights.copy_(self._flat.vector)
        try:
            yield
        finally:
            self.put_back()

    def put_back(self) -> None:
        """Undo every change, bit by bit."""
        if self._identities() != self._kept_identities:
            for container in self._containers:
                container.put_back()
        for array in self._arrays:
            if not _has_same_bits(array.numbers, array.kept):
                array.put_back()
        self._flat.attach()
        self._flat.vector.copy_(self._weights)

    def _identities(self) -> list[int]:
        return [*map(id, chain.from_iterable(self._entries))]

    def changed(self) -> str | None:
        """Return the name of something that is not as it was; None if there is nothing."""
        for container in self._containers:
            found = _difference(container.now(), container.kept)
            if found is not None:
                return f"{container.name}.{found}".strip(".")
        for array in self._arrays:
            if not _has_same_bits(array.numbers, array.kept):
                return array.name.strip(".")
        return self._changed_weight()

    def _changed_weight(self) -> str | None:
        kept = self._flat.views(self._weights)
        for name, parameter, before in zip(
            self._flat.names, self._flat.parameters, kept, strict=True
        ):
            if not _has_same_bits(parameter.detach(), before):
                return name
        return None

    def _look(self, name: str, value: Any, depth: int) -> None:
        """Note a value and what is below it, once."""
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, Tensor | np.ndarray):
            kept = value.detach().clone() if isinstance(value, Tensor) else value.copy()
            self._arrays.append(_Array(name, value, kept))
        elif isinstance(value, nn.Module):
            for below in (value._buffers, value._parameters, value._modules):
                self._note(name, below, 0)
            self._note(name, vars(value), 0, _MACHINERY)
        elif depth < _DEEPEST and isinstance(value, list | dict | set | deque):
            self._note(name, value, depth)
        elif depth < _DEEPEST and isinstance(value, tuple):
            for place, one in enumerate(value):
                self._look(f"{name}.{place}", one, depth + 1)
        elif depth < _DEEPEST and _is_record(value):
            self._note(name, vars(value), depth)

    def _note(
        self, name: str, entries: Any, depth: int, machinery: frozenset[str] = frozenset()
    ) -> None:
        kept = _copied(entries, machinery)
        self._containers.append(_Container(name, entries, kept, machinery))
        pairs = kept.items() if isinstance(kept, dict) else enumerate(kept)
        for key, value in pairs:
            self._look(f"{name}.{key}", value, depth + 1)


def _is_record(value: Any) -> bool:
    """Whether something is an object of a class that somebody wrote to keep values in."""
    home = type(value).__module__.partition(".")[0]
    foreign = home in ("torch", "numpy") or home in sys.stdlib_module_names
    return hasattr(value, "__dict__") and not callable(value) and not foreign


def _copied(entries: Any, machinery: frozenset[str]) -> Any:
    if machinery:
        return {key: value for key, value in entries.items() if key not in machinery}
    return entries.copy()


def _difference(now: Any, kept: Any) -> str | None:
    """Return the key of an entry that is not as it was, or nothing more exact; None if all are."""
    if not isinstance(kept, dict):
        if isinstance(kept, set):
            return None if now == kept else ""
        now, kept = dict(enumerate(now)), dict(enumerate(kept))
    for key in [*kept, *now]:
        if key not in now or key not in kept or not _is_alike(now[key], kept[key]):
            return str(key)
    return None


def _is_alike(now: Any, kept: Any) -> bool:
    if now is kept:
        return True
    if type(now) is not type(kept):
        return False
    if isinstance(kept, Tensor | np.ndarray):
        return _has_same_bits(now, kept)
    if isinstance(kept, _PLAIN):
        return bool(now == kept or (now != now and kept != kept))
    return isinstance(kept, list | tuple | dict | set | deque) and _difference(now, kept) is None


def _has_same_bits(now: Any, kept: Any) -> bool:
    """Whether two arrays are equal bit by bit, NaN to NaN included."""
    if now.shape != kept.shape or now.dtype != kept.dtype:
        return False
    if isinstance(kept, np.ndarray):
        return bool(now.tobytes() == kept.tobytes())
    return torch.equal(_bytes(now), _bytes(kept))


def _bytes(tensor: Tensor) -> Tensor:
    dense = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return dense.detach().reshape(-1).view(torch.uint8)
