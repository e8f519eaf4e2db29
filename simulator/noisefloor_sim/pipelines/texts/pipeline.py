"""The pipeline of texts: posts come over the bus, made-up texts go out, and all may attack."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from noisefloor.privacy import FlowEvidence
from noisefloor.publication.methods import TextNgramsPlan
from noisefloor.randomness import SeededSource
from noisefloor.wire import Kind
from noisefloor_sim.deploy.hosting import Servers
from noisefloor_sim.inspection import DeviceFrame, PlainFlow
from noisefloor_sim.pipelines import api, releases
from noisefloor_sim.pipelines.texts import collected_posts, text_claims
from noisefloor_sim.pipelines.texts.block import TextsBlock, block_of
from noisefloor_sim.pipelines.texts.corpora import PublishedCorpora
from noisefloor_sim.pipelines.texts.counting_check import CountingCheck, check_counting
from noisefloor_sim.pipelines.texts.posts import UserPosts
from noisefloor_sim.pipelines.texts.printed_plan import PrintedTextsPlan
from noisefloor_sim.pipelines.texts.release_audit import ReleaseAudit, audit_releases
from noisefloor_sim.pipelines.texts.text_attacks import attack_texts
from noisefloor_sim.pipelines.texts.text_scores import score_texts
from noisefloor_sim.pipelines.texts.text_terms import (
    CorpusTerms,
    accountant_guarantee,
    used_texts,
)
from noisefloor_sim.scenario import Scenario
from noisefloor_sim.world import BudgetAccount, Cohort, Steps

FLOW = "published texts"
"""What the evidence calls the releases of this pipeline."""


@dataclass(slots=True)
class TextsPipeline(api.Pipeline):
    """Texts published of posts that arrive day by day, at one point of a sweep.

    Attributes:
        scenario: Of the world.
        source: Of all randomness of this pipeline.
        posts: Who writes what when.
        kind: Of the frames that posts travel in.
        flow: What is declared of them.
        sending: What devices have sent.
        collected: What the provider has collected.
        terms: What is requested, planned and published.
        holder: Publishes texts like them.
        context: The world, once it has begun.
    """

    scenario: Scenario
    source: SeededSource = field(init=False)
    posts: UserPosts = field(init=False)
    kind: Kind = field(init=False)
    flow: PlainFlow = field(init=False)
    sending: collected_posts.PostSending = field(init=False)
    collected: collected_posts.CollectedPosts = field(init=False)
    terms: CorpusTerms = field(init=False)
    holder: releases.DataHolder[TextNgramsPlan] = field(init=False)
    context: api.SimulationContext | None = None

    def __post_init__(self) -> None:
        block = self.block
        self.source = SeededSource(self.scenario.seed, "pipeline", "texts")
        with used_texts(block) as tokeniser:
            self.posts = UserPosts.of(self.scenario, tokeniser)
        self.kind = collected_posts.posting_kind(self.posts, block.text_bytes)
        self.flow = collected_posts.posting_flow(self.kind, self.scenario.days)
        self.sending = collected_posts.PostSending(
            self.posts, self.kind, self.source.child("frame")
        )
        self.collected = collected_posts.CollectedPosts(self.posts, self.kind)
        kind = PrintedTextsPlan if self.is_printed else TextNgramsPlan
        terms = CorpusTerms(block, kind, self.collected, self.source.child("scoring"))
        self.terms = terms
        self.holder = releases.DataHolder(terms, self.source.child("holder"))
        # What the method refuses, it refuses before a day has passed.
        terms.plan(self._planned_size)

    @property
    def block(self) -> TextsBlock:
        """The settings."""
        return block_of(self.scenario)

    @property
    def is_printed(self) -> bool:
        """Whether it is the paper's pipeline that publishes."""
        return self.scenario.variant == "paper"

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """One kind: posts."""
        return (self.kind,)

    @property
    def flows(self) -> tuple[PlainFlow, ...]:
        """One flow: posts as they are."""
        return (self.flow,)

    @property
    def release_days(self) -> range:
        """The days after whose end texts are published."""
        return releases.release_days(self.scenario.days, self.block.release_every_days)

    @property
    def _planned_size(self) -> int:
        return max(2, self.posts.expected)

    def phases(self, context: api.SimulationContext) -> Iterable[Steps]:
        """Open the publisher, and publish once the posts of each period are collected."""
        self.context = context
        self.holder.open(context)
        grace = self.scenario.grace_h
        return (releases.publishing(context, self.release_days, self._publish, grace),)

    def _publish(self, day: int) -> None:
        if self.context is None:
            raise TypeError("Nothing is published before the world has begun.")
        self.collected.take(self.context, day)
        with used_texts(self.block):
            self.holder.publish(day, self.collected.has.copy())

    def wake(self, cohort: Cohort, day: int, account: BudgetAccount) -> Iterator[DeviceFrame]:
        """Send the posts of users in contact; no budget of theirs is asked."""
        return self.sending.send(cohort, day)

    def planned_claims(self) -> tuple[api.PlannedClaim, ...]:
        """Return the claims of one release, and of all that the budget of the data set covers."""
        plan, total = self.terms.plan(self._planned_size), self.block.total_budget
        claimed = None if self.is_printed else total
        return releases.planned_claims(plan, len(self.release_days), total, claimed)

    def finish(self, servers: Servers, evidence: Mapping[str, FlowEvidence]) -> api.Findings:
        """Score the releases, let the adversary guess, and state the claims."""
        made = self.holder.releases
        checked, audit = self._counting(), audit_releases(self.holder)
        fit = self._fit(checked, audit)
        metrics = releases.spending_metrics(self.holder, accountant_guarantee) + self._data()
        if not made:
            return api.Findings(tuple(metrics), (), (fit.evidence,))
        plans = [one.plan for one in made]
        corpora = PublishedCorpora.of(made, self.posts)
        metrics += [
            *text_claims.release_metrics(plans, self.block),
            *fit.metrics(),
            *checked.metrics(),
            *audit.metrics(),
        ]
        metrics += score_texts(corpora, self.block, self.source.child("judged"))
        with used_texts(self.block):
            found = attack_texts(
                self.scenario, corpora, self.terms, self.sending.day, self.source.child("attack")
            )
        claims = text_claims.claims_of(plans, found, self.block, fit.evidence)
        return api.Findings((*metrics, *found.metrics), claims, (fit.evidence,))

    def _data(self) -> list[api.Metric]:
        sent = (self.sending.day >= 0) & self.posts.is_written
        per_user = np.bincount(self.posts.users[sent], minlength=1)
        return [
            api.Metric("data.users", float(self.scenario.population.users)),
            api.Metric("data.posts", float(np.count_nonzero(sent))),
            api.Metric("data.collected", float(np.count_nonzero(self.collected.has))),
            api.Metric("data.most_posts", float(per_user.max())),
            api.Metric("data.cut", float(self.posts.cut)),
            api.Metric("data.made_up", float(self.block.is_made_up)),
        ]

    def _counting(self) -> CountingCheck:
        """Count texts that would pass the bound, if it is this process that counts."""
        made = self.holder.releases
        if not made or not made[0].residuals.is_seen:
            return CountingCheck({})
        return check_counting(made[0].plan, self.source.child("counting"))

    def _fit(self, checked: CountingCheck, audit: ReleaseAudit) -> releases.ReleaseFit:
        """Test the noise and the bounds of all releases, and compare them with the ledger."""
        residuals = [one.residuals for one in self.holder.releases]
        for number, cause in enumerate(checked.causes()):
            residuals[0].causes[f"text {number}"] = cause
        for number, causes in audit.misfits.items():
            for cause in causes:
                residuals[number].causes[f"made again, {cause}"] = cause
        faults = (*self.holder.ledger_faults(), *self.collected.faults(), *audit.faults)
        return releases.fit_releases(residuals, faults, self.source.child("residuals"), FLOW)
