"""Which layers can be trained privately; what no type tells, a dry run finds out."""

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy

from noisefloor.errors import UnsupportedModule


def check_module(module: nn.Module) -> None:
    """Refuse layers that couple examples, are random, or change weights in a forward pass.

    Raises:
        UnsupportedModule: With the layer's name, and what to do.
    """
    for name, layer in module.named_modules():
        reason = _reason(layer)
        if reason is not None:
            raise UnsupportedModule(f"{name or '<module>'} ({type(layer).__name__}) {reason}")


def _reason(layer: nn.Module) -> str | None:
    """Return why a layer cannot be trained privately; None if nothing is known."""
    own = (*layer._parameters.values(), *layer._buffers.values())
    if any(is_lazy(one) for one in own if one is not None):
        return "has no shapes yet: call the module once on a public example."
    if _mixes_examples(layer):
        return (
            "mixes the examples of a batch: no example's share could be bounded. Use LayerNorm or "
            "GroupNorm, or freeze its statistics with eval()."
        )
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag) and layer.max_norm is not None:
        return (
            "has a max_norm: looked-up rows are renormalised in the forward pass, and would be "
            "released without noise. Set max_norm=None."
        )
    if _is_random(layer):
        return "draws its own random numbers: set its rate to 0, or call eval()."
    return None


def _mixes_examples(layer: nn.Module) -> bool:
    """Whether it normalises by statistics of a batch, or keeps them; frozen ones are constants."""
    if isinstance(layer, _BatchNorm):
        return layer.training or layer.running_mean is None
    keeps = isinstance(layer, _InstanceNorm) and layer.track_running_stats
    return bool(keeps) and layer.training


def _is_random(layer: nn.Module) -> bool:
    if not layer.training:
        return False
    if isinstance(layer, _DropoutNd):
        return layer.p > 0
    if isinstance(layer, nn.MultiheadAttention):
        return bool(layer.dropout > 0)
    return isinstance(layer, nn.RNNBase) and layer.dropout > 0 and layer.num_layers > 1
