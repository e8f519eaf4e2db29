"""The processes of a topology by name, and the order in which they are stopped."""

STREAM_STORE = "stream-store"
LEDGER_STORE = "ledger-store"
AD_SERVER = "ad-server"
AGGREGATOR = "aggregator"
PUBLISHER = "model-publisher"

STORES = (STREAM_STORE, LEDGER_STORE)
SERVICES = (AD_SERVER, AGGREGATOR, PUBLISHER)
STOPPING_ORDER = (*SERVICES, LEDGER_STORE, STREAM_STORE)
"""The ad server first: then nothing more comes in. The stores last: everybody needs them."""
