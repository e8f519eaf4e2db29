"""Mutants of advertising: training in three versions, requests, and reports of shown ads."""

from mutants.mutant import UNACCOUNTED, Mutant, drawn_again, scenario

ADS = scenario(
    "ads",
    """
    days: 3
    variant: corrected
    budget: 100.0
    population: {users: 4000, cohort: 1024, churn_per_day: 0.0}
    tastes: {source: low-rank}
    devices: {sync_per_day: 1.0, offline: {start_per_day: 0.0}}
    behaviour: {ads: 20}
    attacks: [ads.audit]
    pipelines:
      ads:
        epsilon: 2.0
        training: {method: bits, rounds: 3, once: false, fallback: false}
        delivery: {choice: top-set}
    """,
)
LAPLACE = ("pipelines.ads.training.method=laplace",)
UNCLIPPED = (
    *LAPLACE,
    "pipelines.ads.training.clip=0.01",
    "pipelines.ads.training.block_clip=false",
    "pipelines.ads.training.epsilon=30",
)
WIDE_CLIP = ("pipelines.ads.training.clip=0.5", "pipelines.ads.training.epsilon=8")
SPECTRAL = ("pipelines.ads.training.method=spectral",)
LITE = ("pipelines.ads.training.method=spectral-lite",)
MEANS = ("pipelines.ads.training.fallback=true",)
UNBOUNDED = (
    *LAPLACE,
    "variant=paper",
    "pipelines.ads.training.bounded=false",
    "pipelines.ads.training.local=step",
)
SLATE = ("pipelines.ads.delivery.choice=slate",)
EXPONENTIAL = ("pipelines.ads.delivery.choice=exponential",)
SOLD = ("pipelines.ads.auction.run=true",)
EACH = ("pipelines.ads.delivery.fresh=impression",)

BIT_TRAINING = "platform/noisefloor/ads/training/bit_training.py"
GRADIENT_NOISE = "platform/noisefloor/ads/training/gradient_noise.py"
DIRECTION_SIGNS = "platform/noisefloor/mechanisms/direction_signs.py"
AXIS_SIGNS = "platform/noisefloor/mechanisms/axis_signs.py"
SPECTRAL_TRAINING = "platform/noisefloor/ads/training/spectral_training.py"
AD_REQUEST = "platform/noisefloor/ads/delivery/ad_request.py"
SLATES = "platform/noisefloor/ads/delivery/slates.py"
IMPRESSION_REPORT = "platform/noisefloor/ads/clicks/impression_report.py"
TRAINING = "simulator/noisefloor_sim/pipelines/ads/training.py"
DELIVERY = "simulator/noisefloor_sim/pipelines/ads/delivery.py"
PANEL = "simulator/noisefloor_sim/pipelines/ads/panel.py"
SLOTS = "simulator/noisefloor_sim/pipelines/ads/slots.py"

_BIT = "reports = self.bit.answer(cells, values, source)"
_GRADIENT_NOISE = "noisy += self.noise(noisy.size).reshape(noisy.shape)"
_PANEL_CLICK = "reports = self.mechanism.randomise(symbols, randomness)"
_REQUEST = "return self.mechanism.randomise(self.clipped(scores), source)"
_SHOWN = "        return self.response.randomise(values, source)\n"

ADS_MUTANTS = (
    Mutant(
        "training-bits-raw",
        "Devices send the sign of their gradient in the place of a random bit.",
        BIT_TRAINING,
        _BIT,
        "reports = cells * np.uint32(2) + (values > 0).astype(np.uint32)",
        ADS,
        "training",
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "training-bits-half-noise",
        "Devices answer with their bit at twice the epsilon.",
        BIT_TRAINING,
        _BIT,
        "twice = SampledBit(self.cells, 2 * self.bit.epsilon)\n"
        "        reports = twice.answer(cells, values, source)",
        ADS,
        "training",
        settings=("pipelines.ads.training.clip=0.02",),
        on_device=True,
    ),
    Mutant(
        "training-bits-other-clip",
        "Gradients are clipped at a quarter of the bound that is declared.",
        BIT_TRAINING,
        "np.clip(values / np.float32(self.clip), -1.0, 1.0, out=values)",
        "np.clip(values / np.float32(self.clip / 4), -1.0, 1.0, out=values)",
        ADS,
        "training",
        settings=WIDE_CLIP,
        on_device=True,
    ),
    Mutant(
        "training-bits-cell-of-a-rated-ad",
        "The cell that a device reports on is one of an ad that it has rated.",
        BIT_TRAINING,
        "cells = self.bit.choose(len(ratings), source)",
        "cells = self.bit.choose(len(ratings), source)\n"
        "        ad, place = np.divmod(cells, np.uint32(self.width))\n"
        "        is_rated = ratings.rated[np.arange(len(ad)), ad]\n"
        "        ad = np.where(is_rated, ad, ratings.rated.argmax(axis=1).astype(np.uint32))\n"
        "        cells = ad * np.uint32(self.width) + place",
        ADS,
        "training",
        on_device=True,
    ),
    Mutant(
        "training-same-noise-each-round",
        "The draws of a device are those of its first round.",
        TRAINING,
        'randomness = self.source.child("report", cohort.number, number)',
        drawn_again("randomness", 'self.source.child("report", cohort.number)'),
        ADS,
        "training",
        on_device=True,
    ),
    Mutant(
        "training-not-charged",
        "Training reports are sent without a debit.",
        TRAINING,
        ", present, cost) > 0",
        ", present, 0) > 0",
        ADS,
        "training",
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "training-gradients-raw",
        "Devices send their gradients without noise.",
        GRADIENT_NOISE,
        _GRADIENT_NOISE,
        "self.noise(noisy.size)",
        ADS,
        "training",
        settings=LAPLACE,
        on_device=True,
    ),
    Mutant(
        "training-gradients-half-noise",
        "Devices add half of the noise to their gradients.",
        GRADIENT_NOISE,
        _GRADIENT_NOISE,
        "noisy += self.noise(noisy.size).reshape(noisy.shape) // 2",
        ADS,
        "training",
        settings=LAPLACE,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "training-gradients-not-clipped",
        "Gradients of any size get the noise that is made for clipped ones.",
        GRADIENT_NOISE,
        "            np.clip(scaled, -1.0, 1.0, out=scaled)\n",
        "",
        ADS,
        "training",
        settings=UNCLIPPED,
        on_device=True,
    ),
    Mutant(
        "training-rated-bits-raw",
        "Devices say which ads are rated without a flip.",
        GRADIENT_NOISE,
        "rows[:, :, 0].astype(np.bool_) ^ flips.reshape(rows.shape[:2])",
        "rows[:, :, 0].astype(np.bool_)",
        ADS,
        "training",
        settings=LAPLACE,
        on_device=True,
    ),
    Mutant(
        "training-directions-raw",
        "Devices always report one of the candidates that lean towards their vector.",
        DIRECTION_SIGNS,
        "is_inside = draws.hold.bernoulli(self.hold, count)",
        "is_inside = np.ones(count, dtype=np.bool_)",
        ADS,
        "training",
        settings=SPECTRAL,
        on_device=True,
    ),
    Mutant(
        "training-means-raw",
        "Where means are learned instead, devices report without noise.",
        DIRECTION_SIGNS,
        "is_inside = draws.hold.bernoulli(self.hold, count)",
        "is_inside = np.ones(count, dtype=np.bool_)",
        ADS,
        "training",
        settings=MEANS,
        on_device=True,
    ),
    Mutant(
        "training-means-half-noise",
        "Where means are learned instead, devices report at twice the epsilon.",
        DIRECTION_SIGNS,
        "is_inside = draws.hold.bernoulli(self.hold, count)",
        "twice = raised_weight(2 * self.epsilon, self.top, 2 * self.rows)\n"
        "        is_inside = draws.hold.bernoulli(twice, count)",
        ADS,
        "training",
        settings=MEANS,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "training-unbounded-half-noise",
        "Devices without bounds add half of the printed noise, after gradient steps.",
        GRADIENT_NOISE,
        _GRADIENT_NOISE,
        "noisy += self.noise(noisy.size).reshape(noisy.shape) // 2",
        ADS,
        "training",
        settings=UNBOUNDED,
        on_device=True,
    ),
    Mutant(
        "training-axes-raw",
        "Devices always report one of the candidates along their axis.",
        AXIS_SIGNS,
        "is_inside = holds.bernoulli(self.hold, count)",
        "is_inside = np.ones(count, dtype=np.bool_)",
        ADS,
        "training",
        settings=SPECTRAL,
        on_device=True,
    ),
    Mutant(
        "training-axes-half-noise",
        "Devices report a candidate along their axis at twice the epsilon.",
        AXIS_SIGNS,
        "is_inside = holds.bernoulli(self.hold, count)",
        "twice = raised_weight(2 * self.epsilon, self.top, self.rows)\n"
        "            is_inside = holds.bernoulli(twice, count)",
        ADS,
        "training",
        settings=SPECTRAL,
        on_device=True,
    ),
    Mutant(
        "training-lite-raw",
        "Devices send the sign of their product without a flip.",
        SPECTRAL_TRAINING,
        "            lean ^= flips.bernoulli(self.bit.flip, len(rows))\n",
        "            flips.bernoulli(self.bit.flip, len(rows))\n",
        ADS,
        "training",
        settings=LITE,
        on_device=True,
    ),
    Mutant(
        "requests-exact",
        "Devices request their favourite ad.",
        AD_REQUEST,
        _REQUEST,
        "return self.clipped(scores).argmax(axis=1).astype(np.uint16)",
        ADS,
        "ad-requests",
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "requests-half-noise",
        "Devices request at twice the epsilon.",
        AD_REQUEST,
        _REQUEST,
        "from dataclasses import replace\n\n"
        "        twice = replace(self, epsilon=2 * self.epsilon)\n"
        "        return twice.mechanism.randomise(self.clipped(scores), source)",
        ADS,
        "ad-requests",
        on_device=True,
    ),
    Mutant(
        "requests-exponential-half-noise",
        "Devices request by the exponential mechanism at twice the epsilon.",
        AD_REQUEST,
        _REQUEST,
        "from dataclasses import replace\n\n"
        "        twice = replace(self, epsilon=2 * self.epsilon)\n"
        "        return twice.mechanism.randomise(self.clipped(scores), source)",
        ADS,
        "ad-requests",
        settings=EXPONENTIAL,
        on_device=True,
    ),
    Mutant(
        "requests-same-noise-each-day",
        "The draws of a device are those of its first day.",
        DELIVERY,
        'randomness = self.source.child("request", cohort.number, day)',
        drawn_again("randomness", 'self.source.child("request", cohort.number)'),
        ADS,
        "ad-requests",
        on_device=True,
    ),
    Mutant(
        "requests-not-charged",
        "Requests are made without a debit.",
        DELIVERY,
        "granted = account.spend(day, REQUEST, contact, self.cost, requested)",
        "granted = np.where(contact.any(axis=1), requested, 0)",
        ADS,
        "ad-requests",
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "requests-for-each-slot-one-debit",
        "A request for every slot is made, and one of a day is paid for.",
        DELIVERY,
        "granted = account.spend(day, REQUEST, contact, self.cost, requested)",
        "granted = requested * account.spend(\n"
        "            day, REQUEST, contact, self.cost, np.minimum(requested, 1)\n"
        "        )",
        ADS,
        "ad-requests",
        (UNACCOUNTED,),
        settings=EACH,
        on_device=True,
    ),
    Mutant(
        "requests-slate-half-noise",
        "Devices request slates around their favourite at twice the epsilon.",
        SLATES,
        "places_of(self.selection.randomise(favourites, source), self.slate)",
        "places_of(\n"
        "            mechanisms.SubsetSelection(\n"
        "                self.size, 2 * self.epsilon, self.slate\n"
        "            ).randomise(favourites, source),\n"
        "            self.slate,\n"
        "        )",
        ADS,
        "ad-requests",
        settings=SLATE,
        on_device=True,
    ),
    Mutant(
        "shown-ads-raw",
        "The reported set always holds the shown ad.",
        IMPRESSION_REPORT,
        _SHOWN,
        "        open_ = SubsetSelection(self.ads, 30.0, self.response.subset)\n"
        "        return open_.randomise(values, source)\n",
        ADS,
        "shown-ad-sets",
        settings=SLATE,
        on_device=True,
    ),
    Mutant(
        "shown-ads-half-noise",
        "Shown ads are reported at twice the epsilon.",
        IMPRESSION_REPORT,
        _SHOWN,
        "        twice = SubsetSelection(self.ads, 2 * self.epsilon, self.response.subset)\n"
        "        return twice.randomise(values, source)\n",
        ADS,
        "shown-ad-sets",
        settings=SLATE,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "shown-ads-not-charged",
        "Reports of shown ads are sent without a debit.",
        SLOTS,
        "paid = account.spend(day, SHOWN, contact & sample.has[:, None], cost) > 0",
        "paid = (contact & sample.has[:, None]).any(axis=1)",
        ADS,
        "shown-ad-sets",
        (UNACCOUNTED,),
        settings=SLATE,
        on_device=True,
    ),
    Mutant(
        "panel-clicks-raw",
        "Panel users report their click without a flip.",
        PANEL,
        _PANEL_CLICK,
        "reports = symbols",
        ADS,
        "panel-clicks",
        settings=SOLD,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "panel-clicks-half-noise",
        "Panel users report their click at twice the epsilon.",
        PANEL,
        _PANEL_CLICK,
        "twice = DeliveredClick(len(self.cells), 2 * self.mechanism.epsilon)\n"
        "        reports = twice.randomise(symbols, randomness)",
        ADS,
        "panel-clicks",
        settings=SOLD,
        on_device=True,
    ),
    Mutant(
        "panel-clicks-same-noise-each-day",
        "The draws of a panel user are those of the first day.",
        PANEL,
        'randomness = self.source.child("panel-click", cohort.number, day)',
        drawn_again("randomness", 'self.source.child("panel-click", cohort.number)'),
        ADS,
        "panel-clicks",
        settings=SOLD,
        on_device=True,
    ),
    Mutant(
        "panel-clicks-of-another-cell",
        "Panel users report their click as one on the next campaign's ad.",
        PANEL,
        _PANEL_CLICK,
        "reports = self.mechanism.randomise(\n"
        "            (symbols + 2) % (2 * len(self.cells)), randomness\n"
        "        )",
        ADS,
        "panel-clicks",
        settings=SOLD,
        on_device=True,
    ),
    Mutant(
        "panel-clicks-not-charged",
        "Reports of the panel are sent without a debit.",
        PANEL,
        "paid = account.spend(day, PANEL_REPORT, contact & has[:, None], cost) > 0",
        "paid = (contact & has[:, None]).any(axis=1)",
        ADS,
        "panel-clicks",
        (UNACCOUNTED,),
        settings=SOLD,
        on_device=True,
    ),
)
