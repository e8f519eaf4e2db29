"""Which way of training a scenario asks for."""

from noisefloor.ads.bit_training import BitTraining
from noisefloor.ads.gradient_noise import Form
from noisefloor.ads.laplace_training import LaplaceTraining
from noisefloor.ads.spectral import SpectralTraining
from noisefloor.ads.training import Training
from noisefloor.errors import BadParameter
from noisefloor_sim.pipelines.ads.block import TrainingBlock, block_of
from noisefloor_sim.pipelines.ads.naming import named
from noisefloor_sim.scenario.model import Scenario

SECTION = "pipelines.ads.training"

CENTRE, PRINTED_CENTRE = 0.5, 0.0
"""What ratings are taken from: the middle of their scale, and nothing in the paper."""

PRINTED_CLIP = 1.0
"""The bound of a gradient's coordinate in the paper."""

FEWEST_ADS, MOST_ADS = 3, 256
"""Of which a spectral training can tell the axes."""


def training_of(scenario: Scenario) -> Training | None:
    """Return the way of training at this point; nothing where ratings go in the open or nowhere.

    The paper's variant has the paper's two versions only: whatever else is asked for becomes
    bits as printed.

    Raises:
        BadParameter: The settings do not go together with the number of ads; names the key.
    """
    settings, ads = block_of(scenario), scenario.behaviour.ads
    block, epsilon = settings.training, settings.training_epsilon
    if block.method in ("means", "untrained", "open"):
        return None
    is_paper = scenario.variant == "paper"
    with named(SECTION, {"epsilon_bits": "epsilon", "epsilon_values": "epsilon"}):
        if block.method == "laplace":
            return _laplace(block, ads, epsilon, is_paper=is_paper)
        if block.method == "bits" or is_paper:
            return _bits(block, ads, epsilon, is_paper=is_paper)
    return _spectral(block, ads, epsilon)


def _spectral(block: TrainingBlock, ads: int, epsilon: float) -> SpectralTraining:
    if not FEWEST_ADS <= ads <= MOST_ADS:
        rule = f"only for {FEWEST_ADS} to {MOST_ADS} ads, and behaviour.ads is {ads}; try bits"
        raise BadParameter(f"{SECTION}.method", block.method, rule)
    if block.dimension >= ads:
        rule = f"below behaviour.ads, {ads}, for the method {block.method}"
        raise BadParameter(f"{SECTION}.dimension", block.dimension, rule)
    form = "lite" if block.method == "spectral-lite" else "full"
    with named(SECTION, {}):
        return SpectralTraining(ads, block.dimension, epsilon, form=form, ridge=block.ridge)


def _bits(block: TrainingBlock, ads: int, epsilon: float, *, is_paper: bool) -> BitTraining:
    return BitTraining(
        ads,
        block.dimension,
        epsilon,
        block.rounds,
        clip=PRINTED_CLIP if is_paper else block.clip,
        rate=block.rate or None,
        local=block.local,
        once=block.once and not is_paper,
        offsets=not is_paper,
        centre=PRINTED_CENTRE if is_paper else CENTRE,
        ridge=block.ridge,
    )


def _laplace(block: TrainingBlock, ads: int, epsilon: float, *, is_paper: bool) -> LaplaceTraining:
    form = Form.PRINTED if is_paper else Form.BLOCK if block.block_clip else Form.COORDINATE
    return LaplaceTraining(
        ads,
        block.dimension,
        block.rounds,
        epsilon_bits=epsilon / 2,
        epsilon_values=epsilon / 2,
        form=form,
        clip=block.clip,
        rate=block.rate or None,
        local=block.local,
        centre=PRINTED_CENTRE if is_paper else CENTRE,
        ridge=block.ridge,
    )
