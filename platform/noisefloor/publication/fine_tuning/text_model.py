"""A published text classifier on its backbone: texts in, labels out."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noisefloor.cards import CardDocument, TrustedKeys
from noisefloor.errors import BadBackbone, BadSnapshot, BadTable
from noisefloor.publication.fine_tuning import published_text_model as form
from noisefloor.publication.fine_tuning.backbone import (
    DEFAULT_BACKBONE,
    Backbone,
    load_backbone,
)
from noisefloor.publication.fine_tuning.frozen_layers import Progress, no_progress, run_frozen
from noisefloor.publication.fine_tuning.published_text_model import TextModelFile
from noisefloor.publication.fine_tuning.tokens import tokenise
from noisefloor.publication.tensors import check_release

if TYPE_CHECKING:
    from torch import nn

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TextModel:
    """A published file on the backbone that it was trained on.

    Attributes:
        file: What was published.
        backbone: With what was trained in its place.
    """

    file: TextModelFile
    backbone: Backbone

    @classmethod
    def on(cls, file: TextModelFile, backbone: Backbone) -> "TextModel":
        """Put what was published onto its backbone, which stays as it is.

        Raises:
            BadBackbone: It is another backbone, or has another tokeniser.
            BadSnapshot: The file names parameters that the backbone does not have.
        """
        _check_hashes(file, backbone)
        return cls(file, _with_trained(file, backbone))

    def logits(
        self, texts: Mapping[str, Sequence[Any]], progress: Progress = no_progress
    ) -> Floats:
        """Return a figure for each class: the larger, the likelier."""
        tokens = tokenise(self.backbone, self.file.schema, texts)
        features = run_frozen(self.backbone, tokens, self.file.pooled, progress=progress).pooled
        head = self.file.tensors
        return np.asarray(features @ head[form.HEAD_WEIGHT].T + head[form.HEAD_BIAS])

    def predict(
        self,
        texts: Sequence[str] | Mapping[str, Sequence[str]],
        progress: Progress = no_progress,
    ) -> list[str | int]:
        """Return the predicted label of each text.

        Args:
            texts: A list of texts; where a record has two, the list of each column by its name.
            progress: Is told how many were done.

        Raises:
            BadTable: A column is missing or a text is empty; no text is shown.
        """
        columns = texts if isinstance(texts, Mapping) else self._one_column(texts)
        names = self.file.schema.classes.values
        return [names[place] for place in self.logits(columns, progress).argmax(axis=1)]

    def _one_column(self, texts: Sequence[str]) -> dict[str, Sequence[str]]:
        if isinstance(texts, str):
            raise BadTable("texts", "Expected a list of texts, found one text.")
        if len(self.file.schema.texts) > 1:
            names = ", ".join(self.file.schema.texts)
            raise BadTable("texts", f"Expected a list for each of the columns {names}.")
        return {next(iter(self.file.schema.texts)): texts}


def load_text_model(
    content: bytes,
    card: CardDocument,
    keys: TrustedKeys = (),
    *,
    backbone: str | Path | Backbone = DEFAULT_BACKBONE,
    unsigned: bool = False,
) -> TextModel:
    """Return a published text classifier, once its publisher signed for it.

    Args:
        content: As it was fetched.
        card: Its card, as it was fetched: bytes, or what they are as JSON.
        keys: Of the publishers that are trusted, or the file that holds them.
        backbone: The directory of the model that it was trained on.
        unsigned: Whether to insist on a card whose signature is not checked.

    Raises:
        BadCard: The card is unsigned, of another key, changed, of a newer format or damaged.
        BadSnapshot: The file was changed, or is another one, or holds no text classifier.
        BadBackbone: The directory holds another model, or another tokeniser.
    """
    check_release(content, card, keys, unsigned=unsigned)
    file = TextModelFile.read(content)
    return TextModel.on(
        file, backbone if isinstance(backbone, Backbone) else load_backbone(backbone)
    )


def _check_hashes(file: TextModelFile, backbone: Backbone) -> None:
    for what, expected, found in (
        ("weights and configuration", file.backbone_sha256, backbone.weights_sha256),
        ("tokeniser", file.tokeniser_sha256, backbone.tokeniser_sha256),
    ):
        if expected != found:
            rule = f"is not what this model was trained on: its {what} differ (SHA-256)"
            raise BadBackbone(backbone.folder, rule)


def _with_trained(file: TextModelFile, backbone: Backbone) -> Backbone:
    """Return a copy of the backbone with what was trained; the head is no part of it."""
    inner = [name for name in file.tensors if not name.startswith("head.")]
    if file.tensors[form.HEAD_WEIGHT].shape[1] != backbone.width * len(file.pooled):
        raise BadSnapshot("Artefact: its head does not fit the backbone.")
    if max(file.pooled) > backbone.depth:
        raise BadSnapshot("Artefact: it names layers that the backbone does not have.")
    if not inner:
        return backbone
    made = replace(
        backbone,
        layers=copy.deepcopy(backbone.layers),
        embeddings=copy.deepcopy(backbone.embeddings),
    )
    for name in inner:
        if name.startswith(form.ADAPTERS) and name.endswith(form.RIGHT):
            continue  # taken with its left one
        _put(made, name, file.tensors)
    return made


def _put(backbone: Backbone, name: str, tensors: Mapping[str, Floats]) -> None:
    """Put one tensor into its place, or add the product of two factors there."""
    import torch

    try:
        target = _target(backbone, name)
        value = torch.from_numpy(tensors[name])
        if name.startswith(form.ADAPTERS):
            other = tensors[name.removesuffix(form.LEFT) + form.RIGHT]
            value = target.detach() + value @ torch.from_numpy(other)
        if value.shape != target.shape:
            raise ValueError
    except (AttributeError, KeyError, ValueError, RuntimeError):
        raise BadSnapshot(
            "Artefact: it names parameters that the backbone does not have."
        ) from None
    with torch.no_grad():
        target.copy_(value)


def _target(backbone: Backbone, name: str) -> "nn.Parameter":
    """Return the parameter that a tensor replaces, or that an adapter adds to."""
    kind, _, rest = name.partition(".")
    if f"{kind}." == form.EMBEDDINGS:
        return backbone.embeddings.get_parameter(rest)
    number, _, inner = rest.partition(".")
    if not 1 <= int(number) <= backbone.depth:
        raise KeyError(number)
    is_adapter = f"{kind}." == form.ADAPTERS
    place = f"{inner.removesuffix(form.LEFT)}.weight" if is_adapter else inner
    return backbone.layers[int(number) - 1].get_parameter(place)
