"""What a tagger finds of mentions that are known."""

from dataclasses import dataclass

import numpy as np

from noisefloor.errors import BadParameter
from noisefloor.publication.text.entities.mentions import EntityKind, Integers, Mentions


@dataclass(frozen=True, slots=True)
class RecallCount:
    """How many known mentions of a kind were found.

    Attributes:
        known: Mentions that there are.
        covered: Of which every character lies in some found mention, whatever its kind: nothing
            of these stays in a text whose mentions are replaced.
        named: Of which every character lies in found mentions of the same kind.
        touched: Of which at least one character lies in some found mention.
    """

    known: int
    covered: int
    named: int
    touched: int

    @property
    def recall(self) -> float:
        """The share that is covered; what is left is what a name leaks by."""
        return self.covered / self.known

    @property
    def named_recall(self) -> float:
        """The share that is covered by mentions of the same kind."""
        return self.named / self.known


def recall_by_kind(known: Mentions, found: Mentions) -> dict[EntityKind, RecallCount]:
    """Return the recall of each kind that there are known mentions of.

    Args:
        known: Mentions of some texts.
        found: What a tagger found in the same texts.
    """
    if not known.count:
        raise BadParameter("known", "<none>", "at least one mention")
    result = {}
    widths = known.ends - known.starts
    anywhere = _covered_lengths(known, found)
    for kind in EntityKind:
        rows = known.of_kind(kind)
        if not len(rows):
            continue
        same = _covered_lengths(known[rows], found[found.of_kind(kind)])
        result[kind] = RecallCount(
            len(rows),
            int((anywhere[rows] == widths[rows]).sum()),
            int((same == widths[rows]).sum()),
            int((anywhere[rows] > 0).sum()),
        )
    return result


def _covered_lengths(known: Mentions, found: Mentions) -> Integers:
    """Return of each known mention how many characters lie in found ones.

    Found spans are merged and lie one after the other on one line for all documents; the covered
    length up to any place is then a running sum.
    """
    apart = found.disjoint()
    if not apart.count:
        return np.zeros(known.count, dtype=np.int64)
    far = int(max(known.ends.max(initial=0), apart.ends.max())) + 1
    starts, ends = apart.documents * far + apart.starts, apart.documents * far + apart.ends
    before = np.concatenate([[0], np.cumsum(ends - starts)])

    def covered_up_to(places: Integers) -> Integers:
        row = np.searchsorted(starts, places, side="right") - 1
        inside = np.clip(places - starts[row], 0, (ends - starts)[row])
        return np.where(row < 0, 0, before[row] + inside)

    last = covered_up_to(known.documents * far + known.ends)
    return last - covered_up_to(known.documents * far + known.starts)
