"""Mutants of click reports, in every form, and of the reports of shown ads."""

from mutants.mutant import GATE, UNACCOUNTED, Mutant, drawn_again, scenario

CLICKS = scenario(
    "clicks",
    """
    days: 4
    population: {users: 3000, cohort: 1024, churn_per_day: 0.0}
    behaviour: {ads: 20}
    attacks: [clicks.audit]
    pipelines:
      clicks: {form: one-click, epsilon: 1.0}
    """,
)
ESTIMATES = scenario(
    "estimates",
    """
    days: 4
    population: {users: 3000, cohort: 1024, churn_per_day: 0.0}
    behaviour: {ads: 20}
    attacks: [clicks.audit]
    pipelines:
      clicks: {form: one-click, epsilon: 2.0}
    gates:
      - clicks.coverage > 0.8
      - clicks.error_relative < 2
    """,
)
DELIVERED, MEMOISED = ("pipelines.clicks.form=delivered",), ("pipelines.clicks.form=memoised",)
CAPPED = ("pipelines.clicks.form=capped", "pipelines.clicks.most_clicks=2")
PADDED = ("pipelines.clicks.form=pad-and-sample", "pipelines.clicks.most_clicks=2")
COUNTING = ("pipelines.clicks.counting_share=0.5",)
BUSY = ("behaviour.click_base_rate=0.1",)
MEMORY = ("pipelines.clicks.exhausted=memory", "budget=2.0")

PIPELINE = "simulator/noisefloor_sim/pipelines/clicks/pipeline.py"
DELIVERED_PIPELINE = "simulator/noisefloor_sim/pipelines/clicks/delivered_pipeline.py"
REPORTING = "simulator/noisefloor_sim/pipelines/clicks/reporting.py"
SENDING = "simulator/noisefloor_sim/pipelines/clicks/sending.py"
REPORT = "platform/noisefloor/ads/clicks/click_report.py"
DELIVERED_CLICK = "platform/noisefloor/ads/clicks/delivered_click.py"
DROPPED_CLICKS = "platform/noisefloor/ads/clicks/dropped_clicks.py"
RATES = "platform/noisefloor/ads/clicks/rates.py"
MEMOISED_CLICKS = "platform/noisefloor/ads/clicks/memoised_clicks.py"
UNARY = "platform/noisefloor/mechanisms/unary.py"
SERVING = "simulator/noisefloor_sim/runs/ad_serving.py"

_DRAWN = "self.mechanism.encoding.randomise(kept, randomness)"
_TWICE = """type(self.mechanism)(
                self.mechanism.ads,
                2 * self.mechanism.epsilon,
                self.mechanism.form,
                self.mechanism.most_clicks,
            ).encoding.randomise(kept, randomness)"""

CLICK_MUTANTS = (
    Mutant(
        "clicks-raw",
        "Devices send the clicks that the cap keeps, without noise.",
        PIPELINE,
        _DRAWN,
        "kept",
        CLICKS,
        "clicks",
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-half-noise",
        "Devices randomise at twice the epsilon.",
        PIPELINE,
        _DRAWN,
        _TWICE,
        CLICKS,
        "clicks",
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-same-noise-each-day",
        "The draws of a device are those of its first day.",
        PIPELINE,
        "randomness = self.flow.source.child(number, day)",
        drawn_again("randomness", "self.flow.source.child(number)"),
        CLICKS,
        "clicks",
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-same-noise-each-cohort",
        "Devices of all cohorts share their draws.",
        PIPELINE,
        "randomness = self.flow.source.child(number, day)",
        drawn_again("randomness", "self.flow.source.child(day)"),
        CLICKS,
        "clicks",
        on_device=True,
    ),
    Mutant(
        "clicks-one-draw-a-row",
        "All bits of a report share one draw.",
        UNARY,
        "            zeros.bernoulli(self.rise, some.size, out=answered)\n",
        "            drawn = zeros.bernoulli(self.rise, len(bits[rows]))\n"
        "            answered[:] = np.repeat(drawn, self.size)\n",
        CLICKS,
        "clicks",
        on_device=True,
    ),
    Mutant(
        "clicks-no-cap",
        "All clicks of a user go into a report that is private for one.",
        PIPELINE,
        "return SentReports(self.mechanism.encoding.randomise(kept, randomness), kept)",
        "one = self.mechanism.encoding\n"
        "            open_ = type(one)(one.size, one.stay, one.rise, one.size)\n"
        "            return SentReports(open_.randomise(bits, randomness), bits)",
        CLICKS,
        "clicks",
        settings=BUSY,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-first-click-kept",
        "The cap keeps the ads with the largest numbers in place of a random choice.",
        REPORT,
        "losers = np.argsort(keys, axis=1)[:, :-most]",
        "losers = np.argsort(rows * np.arange(1, rows.shape[1] + 1), axis=1)[:, :-most]",
        CLICKS,
        "clicks",
        settings=BUSY,
        on_device=True,
    ),
    Mutant(
        "clicks-capped-half-noise",
        "Devices with a cap of two clicks randomise at twice the epsilon.",
        PIPELINE,
        _DRAWN,
        _TWICE,
        CLICKS,
        "clicks",
        settings=CAPPED,
        on_device=True,
    ),
    Mutant(
        "clicks-padded-raw",
        "Devices send the click that they sampled, without noise.",
        PIPELINE,
        _DRAWN,
        "kept",
        CLICKS,
        "clicks",
        settings=PADDED,
        on_device=True,
    ),
    Mutant(
        "clicks-padded-no-padding",
        "Devices sample among their clicks and not among clicks and padding.",
        REPORT,
        "pick = draws.below(np.maximum(count, np.uint32(self.most_clicks)), len(count))",
        "pick = draws.below(np.maximum(count, np.uint32(1)), len(count))",
        CLICKS,
        "clicks",
        settings=PADDED,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-delivered-raw",
        "The click on a delivered ad is sent as it is.",
        DELIVERED_CLICK,
        "draws.bernoulli(self.response.flip, len(reports[rows]))",
        "draws.bernoulli(0, len(reports[rows]))",
        CLICKS,
        "delivered-clicks",
        settings=DELIVERED,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-delivered-half-noise",
        "The click on a delivered ad is randomised at twice the epsilon.",
        DELIVERED_CLICK,
        "draws.bernoulli(self.response.flip, len(reports[rows]))",
        "draws.bernoulli(type(self)(self.ads, 2 * self.epsilon).response.flip, "
        "len(reports[rows]))",
        CLICKS,
        "delivered-clicks",
        settings=DELIVERED,
        on_device=True,
    ),
    Mutant(
        "clicks-delivered-same-noise",
        "A device draws once whether the click is flipped, and uses it each day.",
        DELIVERED_PIPELINE,
        """        randomness = self.flow.source.child(number, day)
        fresh = SentReports(self.mechanism.randomise(inputs, randomness), inputs)
""",
        "        "
        + drawn_again("randomness", "self.flow.source.child(number)")
        + """
        kept = self.mechanism.randomise(np.zeros(len(cohort), dtype=np.int64), randomness)
        fresh = SentReports(inputs ^ kept[paid].astype(inputs.dtype), inputs)
""",
        CLICKS,
        "delivered-clicks",
        settings=DELIVERED,
        on_device=True,
    ),
    Mutant(
        "clicks-permanent-drawn-anew",
        "Permanent answers are drawn anew each day.",
        PIPELINE,
        """        if number not in self.flips:
            memory = self.flow.source.child("memory", number)
            self.flips[number]""",
        """        if day >= 0:
            memory = self.flow.source.child("memory", number, day)
            self.flips[number]""",
        CLICKS,
        "clicks",
        settings=MEMOISED,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-permanent-raw",
        "The permanent answer is the click itself.",
        MEMOISED_CLICKS,
        "return flips.reshape(users, self.ads, 2)",
        "return np.zeros((users, self.ads, 2), dtype=np.bool_)",
        CLICKS,
        "clicks",
        settings=MEMOISED,
        on_device=True,
    ),
    Mutant(
        "clicks-permanent-bare",
        "The permanent answer is sent without a fresh draw on top of it.",
        MEMOISED_CLICKS,
        "return np.asarray(answer ^ fresh.reshape(bits.shape))",
        "return np.asarray(answer)",
        CLICKS,
        "clicks",
        settings=MEMOISED,
        on_device=True,
    ),
    Mutant(
        "clicks-repeated-raw",
        "A device without budget sends the clicks of its last report in place of the report.",
        SENDING,
        "np.concatenate([fresh.reports, last.sent.reports[again]])",
        "np.concatenate([fresh.reports, last.sent.inputs[again]])",
        CLICKS,
        "clicks",
        settings=MEMORY,
        on_device=True,
    ),
    Mutant(
        "clicks-repeated-redrawn",
        "A device without budget draws a fresh report of the same clicks.",
        REPORTING,
        "        reports = sent.reports\n",
        "        reports = sent.reports\n"
        "        if again.any() and not isinstance(self.mechanism, MemoisedClicks):\n"
        '            redrawn = self.source.child("again", cohort, day)\n'
        "            kept = sent.inputs[len(fresh.reports) :]\n"
        "            reports = reports.copy()\n"
        "            reports[len(fresh.reports) :] = self.mechanism.randomise(kept, redrawn)\n",
        CLICKS,
        "clicks",
        settings=MEMORY,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-not-charged",
        "Reports are sent without a debit.",
        PIPELINE,
        "paid = account.spend(day, CLICK_REPORT, contact, cost) > 0",
        "paid = contact.any(axis=1)",
        CLICKS,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-charged-twice",
        "A report is debited twice.",
        PIPELINE,
        "paid = account.spend(day, CLICK_REPORT, contact, cost) > 0",
        "paid = account.spend(day, CLICK_REPORT, contact, cost) > 0\n"
        "            account.spend(day, CLICK_REPORT, contact & paid[:, None], cost)",
        CLICKS,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "clicks-half-charged",
        "A report costs half of what is claimed of it.",
        REPORTING,
        "self.cost = Amount.cost(self.mechanism.claimed).micro_epsilon",
        "self.cost = Amount.cost(self.mechanism.claimed).micro_epsilon // 2",
        CLICKS,
        "clicks",
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "clicks-permanent-charged-daily",
        "Permanent answers are paid for again each day.",
        PIPELINE,
        "open_ = contact & ~joined[:, None]",
        "open_ = contact",
        CLICKS,
        "clicks",
        (UNACCOUNTED,),
        settings=(*MEMOISED, "budget=100.0"),
        on_device=True,
    ),
    Mutant(
        "impressions-wrong-ad",
        "Devices report the ad after the one that was shown.",
        SERVING,
        "frames = device_frames(IMPRESSIONS, number, kind, day, ads, draws, truth=ads)",
        "frames = device_frames(\n"
        "            IMPRESSIONS, number, kind, day, (ads + 1) % kind.cells, draws, truth=ads\n"
        "        )",
        CLICKS,
        "impressions",
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "clicks-not-debiased",
        "The share of ones is taken for the share of clicks.",
        "platform/noisefloor/mechanisms/base.py",
        "value = (np.asarray(supports, dtype=np.float64) / n - lack) / (hold - lack)",
        "value = np.asarray(supports, dtype=np.float64) / n",
        ESTIMATES,
        "clicks.error_relative < 2",
        (GATE,),
        in_suite=True,
    ),
    Mutant(
        "clicks-delivered-not-debiased",
        "Clicks on delivered ads are counted as they were reported.",
        DELIVERED_CLICK,
        "mechanisms.Estimate((ones - lie * shown) / (1 - 2 * lie), error)",
        "mechanisms.Estimate(ones.astype(np.float64), error)",
        ESTIMATES,
        "clicks.error_relative < 2",
        (GATE,),
        settings=DELIVERED,
    ),
    Mutant(
        "clicks-interval-not-debiased",
        "Intervals are those of the reported ones, not of the clicks.",
        RATES,
        "over = np.asarray(supports) + 0.5 * sign - count * lack",
        "over = np.asarray(supports) + 0.5 * sign",
        ESTIMATES,
        "clicks.coverage > 0.8",
        (GATE,),
        in_suite=True,
    ),
    Mutant(
        "dropped-clicks-raw",
        "Devices tell whether a click is dropped, without noise.",
        DROPPED_CLICKS,
        "return self.response.randomise(rounded, source).astype(np.uint8)",
        "return rounded.astype(np.uint8)",
        CLICKS,
        "dropped-clicks",
        settings=COUNTING,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "dropped-clicks-not-rounded",
        "Whoever has a click dropped reports a one: the rounded mean is gone.",
        DROPPED_CLICKS,
        'source.stage("round").below(self.most, len(excess)) < excess',
        "excess > 0",
        CLICKS,
        "dropped-clicks",
        settings=COUNTING,
        on_device=True,
    ),
    Mutant(
        "dropped-clicks-unpaid",
        "Reports of dropped clicks cost half of what they are claimed at.",
        PIPELINE,
        "account.spend(day, DROPPED_REPORT, open_, counting.cost) > 0",
        "account.spend(day, DROPPED_REPORT, open_, counting.cost // 2) > 0",
        CLICKS,
        "dropped-clicks",
        (UNACCOUNTED,),
        settings=COUNTING,
        on_device=True,
    ),
)
