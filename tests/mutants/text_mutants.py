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

POSTS = scenario(
    "posts",
    """
    days: 2
    population: {users: 300, cohort: 256, churn_per_day: 0.0}
    attacks: [texts.lengths]
    pipelines:
      texts:
        {epsilon: 1.0, texts: 100, release_every_days: 2, post_over_days: 2, canaries: 500,
         judged: 40, rare_words: 20, secrets: 4, candidates: 4}
    """,
)
"""What devices post, with little else."""

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
POSTED = "platform/noisefloor/publication/text/posted_texts.py"
COLLECTED = "simulator/noisefloor_sim/pipelines/texts/collected_posts.py"
FRAMES = "platform/noisefloor/wire/frames.py"
PUBLISHER = "platform/noisefloor/roles/model_publisher.py"

RELEASE, POST = "published texts", "posted text"

_NOISY = "noisy = clean + counting.noise(self.source.child(name))"
_WRITE = 'return writer.write(self.texts, source.child("texts"))'

_KIND_AND_REPORTS = """{_TEXT: PostedText(most_bytes), _CLASS: Symbols(classes)})


def posts_of(texts: Sequence[str] | NDArray[np.object_], labels: NDArray[np.int64]) -> object:
    \"\"\"Return texts and labels as the columns of the kind.\"\"\"
    return {_TEXT: list(texts), _CLASS: labels}"""

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
    Mutant(
        "texts-post-says-who",
        "A device adds the number of its row, which says who it is, to the text of a post.",
        POSTED,
        "return {_TEXT: list(texts), _CLASS: labels}",
        'return {_TEXT: [f"{it} user {at}" for at, it in enumerate(texts)], _CLASS: labels}',
        POSTS,
        POST,
        on_device=True,
        in_suite=True,
    ),
    Mutant(
        "texts-one-more-column",
        "A frame of posts has one more column, which says who posted.",
        POSTED,
        _KIND_AND_REPORTS,
        _KIND_AND_REPORTS.replace(
            "Symbols(classes)}", 'Symbols(classes), "who": Symbols(256)}'
        ).replace("_CLASS: labels}", '_CLASS: labels, "who": np.arange(len(texts)) % 256}'),
        POSTS,
        POST,
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "texts-posts-in-order",
        "The posts of a frame come in the order of the users.",
        FRAMES,
        '    order = source.stage("order").permutation(batch.num_rows)\n    for place, start',
        "    order = np.arange(batch.num_rows)\n    for place, start",
        POSTS,
        POST,
        (UNACCOUNTED,),
        on_device=True,
    ),
    Mutant(
        "texts-posted-every-day",
        "A device sends a post again every day, so that an author has more texts than the cap.",
        COLLECTED,
        "        self.day[rows] = day\n",
        "        self.day[rows] = np.where(rows % 2, day, _NOT_YET)\n",
        POSTS,
        RELEASE,
        (UNACCOUNTED,),
        on_device=True,
        in_suite=True,
    ),
)
