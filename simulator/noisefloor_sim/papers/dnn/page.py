"""The page of the DNN reproduction: verdicts, the fault in numbers, and one figure of all."""

import math
from collections.abc import Sequence

from noisefloor.privacy import ClaimVerdict
from noisefloor.publication.methods import WHOLE_MODEL
from noisefloor.publication.networks import NetworkClaim
from noisefloor_sim.papers import intervals, verdicts
from noisefloor_sim.papers.dnn.figures import FULL, READINGS, TITLES, DnnPoint
from noisefloor_sim.papers.dnn.methods import METHODS, DnnMethod, DnnPlan
from noisefloor_sim.papers.output import claims_table
from noisefloor_sim.report import ClaimRow, Curve, Page, Plot, Role, RunCard, Section, Table

EXPECTATION = (
    "Every printed figure comes out, and the epsilon that is claimed is proved of the whole model."
)
HOW_TO_READ = "A gap is that to the larger class, paired by fold."
FORMS = {
    "printed": "as printed",
    "clamped": "clamped before the noise",
    "clipped": "records clipped before the noise",
    "corrected": "noise for the sum of all widths",
    "norm": "noise for a clipped L1 norm",
}


def page_of(
    judged: verdicts.Judged,
    runs: intervals.Runs,
    *,
    plan: DnnPlan,
    claims: Sequence[NetworkClaim],
    parameters: int,
    card: Sequence[tuple[str, str]],
) -> Page:
    """Return the whole page."""
    majority, _, _ = intervals.interval(runs[DnnPoint("majority")])
    return Page(
        name="reproduce dnn",
        question="Do the three approaches reach what the paper prints, and what do they protect?",
        expectation=EXPECTATION,
        verdict_sentence=f"{verdicts.sentence(judged)} {whole_model(claims, parameters)}",
        verdict_ok=_is_as_expected(judged, claims),
        claims=[_claim(one) for one in claims],
        sections=[
            Section(
                "One figure, two epsilons",
                "Dashed: at the epsilon the paper states, that of each parameter. Solid, in the "
                "same colour: the same networks at the epsilon that is proved of the whole model, "
                f"{parameters:,} times as much.",
                [_plot(runs, plan, parameters, metric) for metric in ("accuracy", "macro_f1")],
            ),
            Section(
                "Printed and run again",
                f"Over {plan.folds} of 10 folds; always telling the larger class gets "
                f"{majority:.3f}. {HOW_TO_READ} " + " ".join(READINGS),
                # Every claim has one test: a table of tests would say the same again.
                [claims_table(some, TITLES, name, 3) for name, some in judged.items()],
            ),
            Section(
                "What is claimed in numbers",
                "One record may change every parameter, and all of them are published.",
                [_fault_table(claims), _reached_table(runs, plan, parameters)],
            ),
        ],
        run_card=RunCard(card),
        warnings=warnings_of(plan),
    )


def whole_model(claims: Sequence[NetworkClaim], parameters: int) -> str:
    """Say what is proved of the whole model where the paper's epsilon is claimed."""
    whole = [one.claim for one in claims if one.about == WHOLE_MODEL]
    said = max(one.claimed.epsilon for one in whole)
    unproved = sum(not one.proved.is_finite for one in whole)
    holds = sum(one.verdict is ClaimVerdict.HOLDS for one in whole)
    above = [one.proved.epsilon for one in whole if said < one.proved.epsilon < math.inf]
    rest = f", {len(above)} prove up to epsilon {max(above):,.0f}" if above else ""
    return (
        f"Epsilon {said:g} is claimed of a model of {parameters:,} parameters in {len(whole)} "
        f"forms: {holds} hold, {unproved} prove nothing{rest}."
    )


def _is_as_expected(judged: verdicts.Judged, claims: Sequence[NetworkClaim]) -> bool | None:
    if any(one.claim.verdict is not ClaimVerdict.HOLDS for one in claims):
        return False
    return verdicts.all_hold(next(iter(judged.values())))


def warnings_of(plan: DnnPlan) -> list[str]:
    """Say what a run leaves out."""
    found = []
    if plan.folds < FULL.folds:
        found.append(
            f"Quick run: {plan.folds} of 10 folds, {plan.training.epochs} epochs, "
            f"{len(plan.epsilons)} epsilons. Intervals are wide."
        )
    if plan.is_shuffled:
        found.append(
            "Labels were shuffled: there is nothing to learn, and whatever is reproduced here is "
            "no finding about the paper."
        )
    return found


def _claim(one: NetworkClaim) -> ClaimRow:
    return ClaimRow.of(
        one.claim, one.method, pipeline="publication", variant=FORMS[one.form], point=one.about
    )


def _plot(runs: intervals.Runs, plan: DnnPlan, parameters: int, metric: str) -> Plot:
    ends = (min(plan.epsilons), parameters * max(plan.epsilons))
    curves = []
    for method in METHODS:
        if method.kind == "reference":
            mean, _, _ = intervals.interval(runs[DnnPoint(method.key, metric=metric)])
            curves.append(Curve(method.title, ends, [mean, mean], role="baseline"))
        elif method.kind == "per parameter":
            said = f"{method.title}, epsilon of a parameter"
            curves.append(_curve(method, runs, plan, metric, said, role="bound"))
            shown = f"{method.title}, epsilon of the model"
            curves.append(_curve(method, runs, plan, metric, shown, times=parameters))
        elif method.kind == "whole model":
            role: Role = "measured" if method.approach else "baseline"
            curves.append(_curve(method, runs, plan, metric, method.title, role=role))
    name = "accuracy" if metric == "accuracy" else "macro F"
    return Plot(
        f"{name[0].upper()}{name[1:]} {above_the_larger_class(runs, plan, metric)}",
        "Dashed at the epsilon of one parameter, solid at that of the whole model; grey lines are "
        "references.",
        "epsilon",
        name,
        curves,
        log_x=True,
    )


def above_the_larger_class(runs: intervals.Runs, plan: DnnPlan, metric: str) -> str:
    """Count the points of the paper's ways that are above the larger class, by kind of epsilon."""
    words = []
    for kind, whose in (("per parameter", "of a parameter"), ("whole model", "of the model")):
        gaps = [
            intervals.paired_gap(
                DnnPoint(one.key, epsilon, metric), DnnPoint("majority", metric=metric), runs
            )
            for one in METHODS
            if one.approach and one.kind == kind
            for epsilon in one.epsilons(plan)
        ]
        above = sum(low > 0 for _, low, _ in gaps)
        words.append(f"{above} of {len(gaps)} at the epsilon {whose}")
    return f"above the larger class: {', '.join(words)}"


def _curve(
    method: DnnMethod,
    runs: intervals.Runs,
    plan: DnnPlan,
    metric: str,
    name: str,
    *,
    times: int = 1,
    role: Role = "measured",
) -> Curve:
    epsilons = method.epsilons(plan)
    found = [intervals.interval(runs[DnnPoint(method.key, one, metric)]) for one in epsilons]
    has_band = role == "measured"
    return Curve(
        name,
        [times * one for one in epsilons],
        [mean for mean, _, _ in found],
        [max(low, 0.0) for _, low, _ in found] if has_band else None,
        [min(high, 1.0) for _, _, high in found] if has_band else None,
        role=role,
        group=method.key,
    )


def _fault_table(claims: Sequence[NetworkClaim]) -> Table:
    rows = [
        (
            one.method,
            FORMS[one.form],
            one.about,
            one.claim.claimed.epsilon,
            one.claim.proved.epsilon,
            "" if one.approximate is None else one.approximate.epsilon,
            one.claim.proved.reason,
        )
        for one in claims
    ]
    return Table(
        "Epsilon claimed and proved",
        "Substitution of one record. The last epsilon is what the accountant proves of the same "
        "noise if a delta of 1e-5 is allowed.",
        ("method", "form", "of", "claimed", "proved", "with delta", "why"),
        rows,
    )


def _reached_table(runs: intervals.Runs, plan: DnnPlan, parameters: int) -> Table:
    rows = [
        (
            method.title,
            epsilon or "",
            method.proved(epsilon, parameters) if epsilon else "",
            f"{intervals.interval(runs[DnnPoint(method.key, epsilon)])[0]:.3f}",
            f"{intervals.interval(runs[DnnPoint(method.key, epsilon, 'macro_f1')])[0]:.3f}",
        )
        for method in METHODS
        for epsilon in method.epsilons(plan)
    ]
    return Table(
        "What every method reaches",
        "Means over folds, with the epsilon that is stated and the one proved of the whole model.",
        ("method", "epsilon stated", "epsilon of the model", "accuracy", "macro F"),
        rows,
    )
