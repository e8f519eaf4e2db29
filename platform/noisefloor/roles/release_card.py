"""What a card says of its making: software, charge and place in the ledger, and who signed it."""

from collections.abc import Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from noisefloor.accounting import SpendReceipt
from noisefloor.cards import CARD_FORMAT, SigningKey, sign_card
from noisefloor.privacy import number_or_inf


def finished_card(
    card: Mapping[str, Any], receipt: SpendReceipt | None, signer: SigningKey | None
) -> dict[str, Any]:  # Any: JSON
    """Return a card with what the ledger wrote down of its charge, signed.

    Args:
        card: What is said of the release itself.
        receipt: Of its charge. It never changes, so that a card that is made again after a crash
            says the same time, position and totals. None if nobody paid, in a simulation.
        signer: Signs; without one the card says that nobody did.
    """
    whole = {
        **card,
        "software": {"name": "noisefloor", "version": software_version()},
        "ledger": None if receipt is None else ledger_fields(receipt),
    }
    if signer is not None:
        return sign_card(whole, signer)
    return {**whole, "card_format": CARD_FORMAT, "publisher": None, "signature": None}


def ledger_fields(receipt: SpendReceipt) -> dict[str, Any]:  # Any: JSON
    """Write what a release cost, all releases of its data set so far, and where that is kept."""
    return {
        "at": receipt.at,
        "position": receipt.position,
        "head": receipt.head,
        "cost": {"epsilon": receipt.debited.epsilon, "delta": receipt.debited.delta},
        "total_so_far": {
            "epsilon": number_or_inf(receipt.total.epsilon),
            "delta": receipt.total.delta,
        },
    }


@lru_cache(maxsize=1)
def software_version() -> str:
    """Return the version of this package; empty where it is used without being installed."""
    try:
        return version("noisefloor")
    except PackageNotFoundError:
        return ""
