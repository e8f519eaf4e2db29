"""Mutants of published texts: noise of counts, and what texts are made of."""

from mutants.mutant import BROKEN, UNACCOUNTED, Mutant, scenario

TEXTS = scenario(
    "texts",
    """
    days: 1
    population: {users: 600, cohort: 512, churn_per_day: 0.0}
    attacks: [texts.rare-word]
    pipelines:
      texts:
        {epsilon: 1.0, texts: 1000, release_every_days: 1, canaries: 500, judged: 40,
         rare_words: 40, secrets: 4, candidates: 4}
    """,
)

MANY_WORDS = (
    "population.users=860",
    "pipelines.texts.epsilon=0.5",
    "pipelines.texts.texts=24000",
    "pipelines.texts.rare_words=320",
)
"""Words that one post each has, and as many texts that each is likely to be a first piece."""

BOUNDARY = ("variant=paper", "attacks=[texts.k-boundary]")

COUNTING = "platform/noisefloor/publication/text/ngrams/counting.py"
COUNTS = "platform/noisefloor/publication/text/ngrams/noisy_counts.py"
METHOD = "platform/noisefloor/publication/methods/text_ngrams.py"
PRINTED = "simulator/noisefloor_sim/pipelines/texts/printed_plan.py"
PUBLISHER = "platform/noisefloor/roles/model_publisher.py"

RELEASE = "published texts"

_NOISY = "noisy = clean + counting.noise(self.source.child(name))"
_WRITE = 'return writer.write(self.texts, source.child("texts"))'

TEXT_MUTANTS = (
    Mutant(
        "texts-pairs-without-noise",
        "Counts of pairs are used without noise.",
        COUNTING,
        _NOISY,
        "drawn = counting.noise(self.source.child(name))\n"
        '        noisy = clean + drawn * (name != "pairs")',
        TEXTS,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "texts-half-noise",
        "All counts get half of the noise.",
        COUNTS,
        "    return GaussianTable(sigma)\n",
        "    return GaussianTable(sigma / 2)\n",
        TEXTS,
        RELEASE,
    ),
    Mutant(
        "texts-not-bounded",
        "A text counts as often as it has a cell, whatever its norm.",
        COUNTS,
        "        return np.asarray(chosen)\n",
        "        return np.full_like(chosen, self.bound.grid)\n",
        TEXTS,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "texts-lengths-counted-twice",
        "Lengths are counted twice, with noise each, and charged once.",
        COUNTING,
        'noisy, _ = watch.release("lengths", tables.length_table(documents, plan))',
        'noisy, _ = watch.release("lengths", tables.length_table(documents, plan))\n'
        "    again = _Watched(source.child('again'), residuals)\n"
        '    noisy += again.release("lengths", tables.length_table(documents, plan))[0]',
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
    ),
    Mutant(
        "texts-seeds-from-posts",
        "The first piece of each published text is a piece of the posts.",
        METHOD,
        _WRITE,
        'made = writer.write(self.texts, source.child("texts"))\n'
        "        pieces = made.pieces.copy()\n"
        '        drawn = source.child("seeds").below(len(documents.pieces), made.count)\n'
        "        pieces[made.offsets[:-1]] = documents.pieces[drawn]\n"
        "        return Documents(pieces, made.offsets, made.labels)",
        TEXTS,
        "texts.corpus",
        (BROKEN,),
        settings=MANY_WORDS,
        in_suite=True,
    ),
    Mutant(
        "texts-k-anonymity-called-private",
        "What is proved of places that climb to k-anonymity is what is claimed of them.",
        PRINTED,
        "name: Claim(cost, Guarantee.none(REASONS[name], cost.neighbours, cost.model))",
        "name: Claim(\n"
        "                cost,\n"
        "                cost\n"
        "                if name == GENERALISATION\n"
        "                else Guarantee.none(REASONS[name], cost.neighbours, cost.model),\n"
        "            )",
        TEXTS,
        "texts.generalisation",
        (BROKEN,),
        settings=BOUNDARY,
        in_suite=True,
    ),
    Mutant(
        "texts-not-charged",
        "A release of texts is made without a charge.",
        PUBLISHER,
        "            self._charge(request, claim)\n            made",
        "            made",
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
    ),
)
