"""Mutants of frames, network, accounts and servers: what every flow has in common."""

from mutants.mutant import MISFIT, UNACCOUNTED, Mutant, scenario

STEADY = scenario(
    "steady",
    """
    days: 4
    population: {users: 3000, cohort: 1024, churn_per_day: 0.0}
    devices: {sync_per_day: 1.0, offline: {start_per_day: 0.0}}
    behaviour: {ads: 20}
    attacks: [clicks.audit]
    pipelines:
      clicks: {form: one-click, epsilon: 1.0}
    """,
)
LOSSY = scenario(
    "lossy",
    """
    days: 3
    population: {users: 3000, cohort: 512, churn_per_day: 0.0}
    network: {loss: 0.3, duplicate: 0.3, retries: 6, retry_after_s: 600}
    behaviour: {ads: 20}
    attacks: [clicks.audit]
    pipelines:
      clicks: {form: one-click, epsilon: 1.0}
    """,
)

FRAMES = "platform/noisefloor/wire/frames.py"
KINDS = "platform/noisefloor/wire/kinds.py"
NETWORK = "simulator/noisefloor_sim/world/network.py"
BUDGETS = "simulator/noisefloor_sim/world/budgets.py"
AGGREGATOR = "platform/noisefloor/roles/aggregator.py"
EPOCHS = "platform/noisefloor/roles/epochs.py"
AD_SERVER = "platform/noisefloor/roles/ad_server.py"

_ORDER = """    order = source.stage("order").permutation(batch.num_rows)
    for place, start"""
_SYMBOL = '''def symbol_kind(name: str, size: int) -> Kind:
    """Make the kind whose reports are integers in range(size); the tally counts each."""
    return Kind(name, (("symbol", Symbols(size)),))
'''
_NUMBERED = """class _Numbered(Kind):
    cells = property(lambda self: self.columns[1][1].cells)

    def _only_column(self, values):
        return {"symbol": values, "place": np.arange(len(values)) % 256}

    def rows(self, batch):
        return self.columns[1][1].decode(batch.column(1))

    def tally(self, batch):
        return self.columns[1][1].tally(batch.column(1))


_PLACE = ("place", Symbols(256))


"""
AD_RELEASE = '''        """Return the sums of a closed epoch and the number of rows behind them."""
        return self._aggregator.release(kind, epoch)
'''
_AGAIN = "self.env.process(self._arrive(data, receive, 2 * latency))"

WIRE_MUTANTS = (
    Mutant(
        "wire-rows-in-order",
        "The rows of a frame come in the order of the users.",
        FRAMES,
        _ORDER,
        "    order = np.arange(batch.num_rows)\n    for place, start",
        STEADY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "wire-rows-in-order-of-impressions",
        "The rows of impressions come in the order of the users.",
        FRAMES,
        _ORDER,
        "    order = np.arange(batch.num_rows)\n    for place, start",
        STEADY,
        "impressions",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "wire-same-order-each-day",
        "A cohort's rows come in the same random order each day.",
        FRAMES,
        _ORDER,
        "    order = np.argsort(np.arange(batch.num_rows) * 7919 % 10007)\n    for place, start",
        STEADY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "wire-sorted-rows",
        "The rows of the first half of the users come before those of the second.",
        FRAMES,
        _ORDER,
        '    order = source.stage("order").permutation(batch.num_rows)\n'
        "    half = order < batch.num_rows // 2\n"
        "    order = np.concatenate([order[half], order[~half]])\n"
        "    for place, start",
        STEADY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "wire-one-more-entry",
        "The header of a frame has one more entry.",
        FRAMES,
        '"epoch": epoch, "batch": batch_id}',
        '"epoch": epoch, "batch": batch_id, "version-of-app": "17"}',
        STEADY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
        is_refused=True,
        in_suite=True,
    ),
    Mutant(
        "wire-one-more-column",
        "A frame of impressions has one more column, which numbers the rows.",
        KINDS,
        _SYMBOL,
        _NUMBERED + _SYMBOL.replace("Kind(name, (", "_Numbered(name, (_PLACE, "),
        STEADY,
        "impressions",
        (UNACCOUNTED,),
        on_device=True,
        is_refused=True,
        in_suite=True,
    ),
    Mutant(
        "wire-batch-id-of-cohort",
        "All frames of a cohort have the same batch id.",
        FRAMES,
        'return source.stage("batch", place).bytes_of(ID_BYTES)[:ID_BYTES].tobytes()',
        'return (str(source).split(", ")[3][:4].encode() + bytes(ID_BYTES))[:ID_BYTES]',
        STEADY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "wire-frame-sent-twice",
        "Each frame is sent a second time, under another batch id.",
        FRAMES,
        "        yield SealedFrame(data, batch_id, rows)\n",
        "        yield SealedFrame(data, batch_id, rows)\n"
        "        other = batch_id[::-1]\n"
        "        data = seal(kind, epoch, batch.take(pa.array(rows)), other)\n"
        "        yield SealedFrame(data, other, rows)\n",
        STEADY,
        "clicks",
        (UNACCOUNTED, MISFIT),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "network-retry-redraws",
        "A frame that is sent again has other bits under the same batch id.",
        NETWORK,
        "            self.traffic.lost += 1\n",
        "            self.traffic.lost += 1\n"
        "            data = data[:-80] + bytes([data[-80] ^ 1]) + data[-79:]\n",
        LOSSY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "network-repeat-differs",
        "A frame that arrives twice has other bits the second time.",
        NETWORK,
        _AGAIN,
        "again = data[:-80] + bytes([data[-80] ^ 1]) + data[-79:]\n"
        "                    self.env.process(self._arrive(again, receive, 2 * latency))",
        LOSSY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "network-repeat-has-another-id",
        "A frame that arrives twice has another batch id the second time.",
        NETWORK,
        _AGAIN,
        "import re\n\n"
        '                    again = re.sub(rb"[0-9a-f]{32}", lambda id_: id_[0][::-1], data, 1)\n'
        "                    self.env.process(self._arrive(again, receive, 2 * latency))",
        LOSSY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "network-loses-silently",
        "A frame that was lost is not sent again, and nobody counts it as given up.",
        NETWORK,
        "            self.traffic.lost += 1\n",
        "            self.traffic.lost += 1\n            return\n",
        LOSSY,
        "accounts",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "accounts-debit-booked-twice",
        "What a flow took of the budgets is booked twice.",
        BUDGETS,
        "self.spent[what] = self.spent.get(what, 0) + int(granted.sum()) * cost",
        "self.spent[what] = self.spent.get(what, 0) + 2 * int(granted.sum()) * cost",
        STEADY,
        "accounts",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "accounts-budget-stays",
        "A debit is booked, and the budget of the device stays as it was.",
        BUDGETS,
        "            self.left[:, device] -= part\n",
        "",
        STEADY,
        "accounts",
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "accounts-budget-passed",
        "Reports are granted although the budget does not cover them.",
        BUDGETS,
        "np.minimum(requested, covered), 0)",
        "requested, 0)",
        STEADY,
        "accounts",
        (UNACCOUNTED,),
        settings=("budget=2.0",),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "accounts-price-halved",
        "Accounts debit half of the cost that they are asked for.",
        BUDGETS,
        "granted = self.device_budgets.spend(contact, cost, requested)",
        "cost //= 2\n        granted = self.device_budgets.spend(contact, cost, requested)",
        STEADY,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "aggregator-counts-repeats",
        "The aggregator counts a frame again although it has seen its batch id.",
        AGGREGATOR,
        """        if state.has(frame.batch_id):
            return FrameOutcome(FrameStatus.DUPLICATE, "was counted before", frame)
""",
        "",
        LOSSY,
        "clicks",
        (UNACCOUNTED,),
        in_suite=True,
    ),
    Mutant(
        "aggregator-drops-a-row",
        "The aggregator leaves the first row of a frame out of the sums.",
        EPOCHS,
        "self.tally += self.kind.tally(frame.batch)",
        "self.tally += self.kind.tally(frame.batch.slice(1))",
        STEADY,
        "clicks",
        (UNACCOUNTED,),
        in_suite=True,
    ),
    Mutant(
        "aggregator-counts-rows-twice",
        "The aggregator counts each row of a frame twice.",
        EPOCHS,
        "self.rows += frame.batch.num_rows",
        "self.rows += 2 * frame.batch.num_rows",
        STEADY,
        "clicks",
        (UNACCOUNTED,),
    ),
    Mutant(
        "aggregator-releases-other-sums",
        "The aggregator releases sums with one added to each.",
        AGGREGATOR,
        "return state.tally.copy(), state.rows",
        "return state.tally + 1, state.rows",
        STEADY,
        "clicks",
        (UNACCOUNTED,),
    ),
    Mutant(
        "ad-server-releases-other-sums",
        "The ad server releases impressions with the first ad left out.",
        AD_SERVER,
        AD_RELEASE,
        AD_RELEASE.replace("return ", "tally, rows = ")
        + "        tally[0] = 0\n        return tally, rows\n",
        STEADY,
        "impressions",
        (UNACCOUNTED,),
    ),
)
