"""Mutants of collected records: selection, training and questions."""

from mutants.mutant import MISFIT, UNACCOUNTED, Mutant, drawn_again, scenario

RECORDS = scenario(
    "records",
    """
    days: 3
    budget: 100.0
    population: {users: 4000, cohort: 1024, churn_per_day: 0.0}
    devices: {sync_per_day: 1.0, offline: {start_per_day: 0.0}}
    attacks: [collection.audit]
    pipelines:
      collection:
        source: synthetic
        epsilon: 2.0
        method: joint-bayes
        questions: protected
        askers: everyone
    """,
)
UNIFIED = (
    "pipelines.collection.method=unified",
    "pipelines.collection.attributes=3",
    "pipelines.collection.classes=3",
    "pipelines.collection.epsilon=4",
)
PRIVATE_RANGES = (
    "pipelines.collection.ranges=private",
    "pipelines.collection.range_share=0.5",
    "pipelines.collection.epsilon=4",
)
SELECTED = (*UNIFIED, "pipelines.collection.selection=response")
PIECEWISE = (*UNIFIED, "pipelines.collection.selection=piecewise")

JOINT = "platform/noisefloor/collection/encoding/joint_response.py"
UNIFIED_RESPONSE = "platform/noisefloor/collection/encoding/unified_response.py"
RANGES = "platform/noisefloor/collection/encoding/private_ranges.py"
RECORD_TASK = "platform/noisefloor/tasks/record_task.py"
REPORT_COLUMNS = "platform/noisefloor/collection/encoding/report_columns.py"
CLASS_SELECTION = "platform/noisefloor/collection/collecting/class_selection.py"
SELECTION = "platform/noisefloor/collection/collecting/selection.py"
TRAINERS = "platform/noisefloor/tasks/round_trainers.py"
PHASES = "simulator/noisefloor_sim/pipelines/collection/phases.py"

TRAINING, QUESTION, SELECTING = "training report", "question", "selection report"
RANGING = "range report"

_DIGITS = "reports[some, self.chosen :] = self._digits(respond(symbols, spaces), attributes)"
_ANSWERED = """                out[:, places] = respond(part.reshape(-1)).reshape(part.shape)
        return reports
"""
_CLASS_LABEL = (
    'label = BinaryResponse(self.share).randomise(records.labels, source.child("label"))'
)
_DECISION = '{"bits": self.decision.randomise(decided, source)[:, None]}'
_ASKED = "granted = context.account(cohort).spend(day, QUESTION, contact, cost, requested)"
_PAID = "paid = context.account(cohort).spend(day, flow, contact, cost) > 0"

_KIND = "    return record_kind(name, columns | "
_NUMBERED = (
    """    from noisefloor.wire import Reduction

    class Numbered(Kind):
        def encode(self, reports):
            places = np.arange(len(reports["value_1"])) % 256
            return Kind.encode(self, {**reports, "place": places})

        def decode(self, batch):
            read = Kind.decode(self, batch)
            return {one: read[one] for one in read if one != "place"}

    def record_kind(name, columns):
        columns = {**columns, "place": Symbols(256)}
        return Numbered(name, tuple(columns.items()), Reduction.COLLECT)

"""
    + _KIND
)

COLLECTION_MUTANTS = (
    Mutant(
        "records-raw",
        "Owners send the classes and the label that they drew, without noise.",
        JOINT,
        _DIGITS,
        "reports[some, self.chosen :] = self._digits(symbols, attributes)",
        RECORDS,
        TRAINING,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "records-half-noise",
        "Owners answer for a tuple at twice the epsilon.",
        JOINT,
        "respond = Responders(self.epsilon, source)",
        "respond = Responders(2 * self.epsilon, source)",
        RECORDS,
        TRAINING,
        on_device=True,
    ),
    Mutant(
        "records-label-of-its-own",
        "A report with a positive label is given by owners with that label alone.",
        JOINT,
        _DIGITS,
        _DIGITS
        + "\n            if self.labelled:\n"
        + "                reports[some, -1] &= rows[some][:, -1].astype(np.uint16)",
        RECORDS,
        TRAINING,
        (MISFIT,),
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "records-attributes-by-data",
        "The first attributes are drawn by owners with a positive label alone.",
        JOINT,
        "attributes = subsets(draw, len(self.sizes), len(rows[some]))",
        "attributes = subsets(draw, len(self.sizes), len(rows[some]))\n"
        "            if self.labelled:\n"
        "                attributes[rows[some][:, -1] == 1] = np.arange(self.chosen)",
        RECORDS,
        TRAINING,
        on_device=True,
    ),
    Mutant(
        "records-unified-raw",
        "Owners send classes and label as they are.",
        UNIFIED_RESPONSE,
        _ANSWERED,
        "                out[:, places] = part\n        return reports\n",
        RECORDS,
        TRAINING,
        settings=UNIFIED,
        on_device=True,
    ),
    Mutant(
        "records-unified-label-of-its-own",
        "A report with the last class is given by owners with that class alone.",
        UNIFIED_RESPONSE,
        _ANSWERED,
        _ANSWERED.replace(
            "        return reports\n",
            "        reports[:, -1] = np.minimum(reports[:, -1], codes[:, -1])\n"
            "        return reports\n",
        ),
        RECORDS,
        TRAINING,
        settings=UNIFIED,
        on_device=True,
    ),
    Mutant(
        "records-one-more-column",
        "A report of a record has one more column, which numbers the rows.",
        REPORT_COLUMNS,
        _KIND,
        _NUMBERED,
        RECORDS,
        TRAINING,
        verdicts=(UNACCOUNTED,),
        settings=UNIFIED,
        on_device=True,
        is_refused=True,
    ),
    Mutant(
        "records-not-charged",
        "Owners report without a debit.",
        PHASES,
        _PAID,
        "paid = contact.any(axis=1)",
        RECORDS,
        TRAINING,
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "records-charged-twice",
        "A report is debited twice.",
        PHASES,
        _PAID,
        _PAID
        + "\n        context.account(cohort).spend(day, flow, contact & paid[:, None], cost)",
        RECORDS,
        TRAINING,
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "ranges-raw",
        "Owners send the part of a range in which their value lies, without noise.",
        RANGES,
        "        drawn, parts = self.response.randomise(codes, source).T\n",
        "        drawn, parts = self.response.randomise(codes, source).T\n"
        "        parts = codes[np.arange(len(codes)), drawn]\n",
        RECORDS,
        RANGING,
        settings=PRIVATE_RANGES,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "ranges-half-noise",
        "Owners send the part of a range at twice the epsilon.",
        RANGES,
        "response = JointResponse(classes.sizes, 1, self.epsilon, labelled=False)",
        "response = JointResponse(classes.sizes, 1, 2 * self.epsilon, labelled=False)",
        RECORDS,
        RANGING,
        settings=PRIVATE_RANGES,
        on_device=True,
    ),
    Mutant(
        "ranges-training-at-whole-epsilon",
        "Training reports have the whole epsilon, although ranges were paid for before.",
        RECORD_TASK,
        "        left = self.epsilon - self.range_epsilon\n",
        "        return self.epsilon\n        left = self.epsilon - self.range_epsilon\n",
        RECORDS,
        TRAINING,
        settings=PRIVATE_RANGES,
        on_device=True,
    ),
    Mutant(
        "ranges-not-applied",
        "Owners report values of the declared range, and not of the one that was learnt.",
        RECORD_TASK,
        "        scaled = self.within_ranges(content, records)\n        if",
        "        scaled = records\n        if",
        RECORDS,
        TRAINING,
        (MISFIT,),
        settings=PRIVATE_RANGES,
        on_device=True,
    ),
    Mutant(
        "selection-label-raw",
        "Owners send their label as it is when attributes are selected.",
        CLASS_SELECTION,
        _CLASS_LABEL,
        "label = records.labels",
        RECORDS,
        SELECTING,
        settings=SELECTED,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "selection-label-half-noise",
        "Owners send their label at twice the epsilon when attributes are selected.",
        CLASS_SELECTION,
        _CLASS_LABEL,
        'label = BinaryResponse(2 * self.share).randomise(records.labels, source.child("label"))',
        RECORDS,
        SELECTING,
        settings=SELECTED,
        on_device=True,
    ),
    Mutant(
        "selection-one-value-for-all",
        "Owners report the value of their first attribute in the place of those requested.",
        SELECTION,
        "        values = np.take_along_axis(records.values, requested, axis=1)\n"
        "        sent = response",
        "        values = np.take_along_axis(records.values, 0 * requested, axis=1)\n"
        "        sent = response",
        RECORDS,
        SELECTING,
        settings=PIECEWISE,
        on_device=True,
    ),
    Mutant(
        "selection-sign-of-values",
        "Owners report the sign of their values by the piecewise mechanism.",
        SELECTION,
        "response.randomise(values.reshape(-1), source",
        "response.randomise(np.sign(values.reshape(-1)), source",
        RECORDS,
        SELECTING,
        settings=PIECEWISE,
        on_device=True,
    ),
    Mutant(
        "questions-raw",
        "Devices send their decision as it is.",
        TRAINERS,
        _DECISION,
        '{"bits": decided[:, None]}',
        RECORDS,
        QUESTION,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "questions-half-noise",
        "Devices send their decision at twice the epsilon.",
        TRAINERS,
        _DECISION,
        '{"bits": BinaryResponse(2 * self.ask_epsilon).randomise(decided, source)[:, None]}',
        RECORDS,
        QUESTION,
        on_device=True,
    ),
    Mutant(
        "questions-same-noise-each-day",
        "The draws of a question are those of the first one.",
        TRAINERS,
        f"            return {_DECISION}\n",
        "            from noisefloor.randomness import SeededSource\n\n            "
        + drawn_again("source", 'SeededSource(0, "question")', 12)
        + f"\n            return {_DECISION}\n",
        RECORDS,
        QUESTION,
        on_device=True,
    ),
    Mutant(
        "questions-not-charged",
        "Questions are asked without a debit.",
        PHASES,
        _ASKED,
        "granted = np.where(contact.any(axis=1), requested, 0)",
        RECORDS,
        QUESTION,
        (UNACCOUNTED,),
        on_device=True,
    ),
)
