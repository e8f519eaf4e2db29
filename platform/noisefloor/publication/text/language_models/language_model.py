"""A pretrained causal language model, read from a directory as transformers write it.

Nothing is downloaded, only safetensors are read, and no code of the directory is run. The model is
used through its cache of keys and values; ``load_language_model`` compares steps through it with
transformers' own pass over a whole text, and refuses a model for which they differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from noisefloor.checks import check_extra
from noisefloor.errors import BadBackbone
from noisefloor.publication.fine_tuning import (
    CONFIG,
    files_sha256,
    quiet_transformers,
    weight_files,
)
from noisefloor.publication.text.language_models.gguf_directory import EXTRA
from noisefloor.publication.text.language_models.model_folders import language_model_folder
from noisefloor.publication.text.tokeniser import TextTokeniser, load_tokeniser

_TURN = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
_TURN_MARKS = ("<|im_start|>", "<|im_end|>")

_MOST_DIFFERENCE = {"float32": 1e-4, "bfloat16": 0.1}
"""Between logits with and without the cache, over the largest of them."""


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal language model and its tokeniser; all of its parameters are frozen.

    Attributes:
        name: As it was requested.
        module: Of transformers, in evaluation mode.
        tokeniser: It cuts private texts too.
        positions: The most pieces in a row, the prompt included.
        precision: What it calculates in: ``float32`` or ``bfloat16``.
        weights_sha256: Of the configuration and the weights.
    """

    name: str
    module: Any  # transformers has a class for each family
    tokeniser: TextTokeniser
    positions: int
    precision: str
    weights_sha256: str

    def prompt_pieces(self, prompt: str) -> list[int]:
        """Return the pieces of a prompt, as the turn of a user where the model knows turns."""
        tokenizer = self.tokeniser.tokenizer
        known = all(tokenizer.token_to_id(mark) is not None for mark in _TURN_MARKS)
        text = _TURN.format(prompt) if known else f"{prompt}\n\n"
        found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return found


def shared_language_model(name: str) -> LanguageModel:
    """Return a language model of this machine by its name, loaded once while it is the same.

    Raises:
        BadParameter: There is none of that name.
        MissingExtra: What reads it is not installed.
        MissingData: It was not fetched; the text says how.
        BadBackbone: Its directory holds no model that can be used.
    """
    check_extra("A language model", EXTRA, "torch", "transformers", "safetensors", "tokenizers")
    folder = language_model_folder(name)
    config = folder / CONFIG
    return _loaded(folder, name, config.stat().st_mtime_ns if config.is_file() else 0)


@cache
def _loaded(folder: Path, name: str, changed_ns: int) -> LanguageModel:
    return load_language_model(folder, name)


def load_language_model(
    folder: Path, name: str = "", precision: str | None = None
) -> LanguageModel:
    """Load a model and its tokeniser from a directory.

    Args:
        folder: With config.json, weights in safetensors and tokenizer.json.
        name: For cards; that of the directory if left out.
        precision: ``float32`` or ``bfloat16``; if left out, bfloat16 where the processor
            multiplies it, which is three times as fast, and float32 elsewhere.

    Raises:
        MissingExtra: transformers are not installed.
        BadBackbone: The directory holds no such model; the text names it and the rule.
    """
    check_extra("A language model", EXTRA, "torch", "transformers", "safetensors", "tokenizers")
    weights = weight_files(folder)
    tokeniser = load_tokeniser(folder)
    chosen = precision or _fast_precision()
    with quiet_transformers():
        module = _module(folder, chosen)
    _check_vocabulary(folder, module, tokeniser)
    _check_cache(folder, module, chosen)
    return LanguageModel(
        name or folder.name,
        module,
        tokeniser,
        int(getattr(module.config, "max_position_embeddings", 1024)),
        chosen,
        files_sha256(folder, [CONFIG, *weights]),
    )


def _fast_precision() -> str:
    import torch

    found: Any = torch.cpu.get_capabilities()
    return "bfloat16" if found.get("avx512_bf16") or found.get("amx_bf16") else "float32"


def _module(folder: Path, precision: str) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    kind: Any = AutoModelForCausalLM  # transformers types half of it
    try:
        module, info = kind.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=getattr(torch, precision),
            output_loading_info=True,
        )
    except Exception as error:  # whatever its parsers raise on a file of somebody else's
        raise BadBackbone(
            folder, f"expected a causal language model ({type(error).__name__})"
        ) from None
    if info["missing_keys"] or info["mismatched_keys"]:
        count = len(info["missing_keys"]) + len(info["mismatched_keys"])
        raise BadBackbone(folder, f"expected weights for all of {CONFIG}: {count} do not fit it")
    module.eval()
    module.requires_grad_(False)
    return module


def _check_vocabulary(folder: Path, module: Any, tokeniser: TextTokeniser) -> None:
    rows = int(module.get_input_embeddings().weight.shape[0])
    if not 0 < tokeniser.size <= rows:
        rule = f"expected at most {rows:,} pieces in its tokeniser, found {tokeniser.size:,}"
        raise BadBackbone(folder, rule)


def _check_cache(folder: Path, module: Any, precision: str) -> None:
    """Refuse a model whose steps through the cache are not its pass over a whole text."""
    import torch

    rows: Sequence[Sequence[int]] = [[0, 1, 2, 0, 1], [0, 1, 2, 1, 2]]
    ids = torch.tensor(rows) % module.get_input_embeddings().weight.shape[0]
    with torch.inference_mode():
        try:
            whole = module(input_ids=ids, use_cache=False).logits[:, -1].float()
            cached = module(input_ids=ids[:1, :3], use_cache=True).past_key_values
            cached.batch_repeat_interleave(2)
            for place in (3, 4):
                step = ids[:, place : place + 1]
                found = module(input_ids=step, past_key_values=cached, use_cache=True)
        except (TypeError, RuntimeError, ValueError, IndexError, AttributeError) as error:
            rule = f"cannot be run with a cache of keys and values ({type(error).__name__})"
            raise BadBackbone(folder, rule) from None
        gap = (found.logits[:, -1].float() - whole).abs().max() / whole.abs().max()
    if not float(gap) <= _MOST_DIFFERENCE[precision]:
        raise BadBackbone(folder, "gives something else with a cache of keys and values")
