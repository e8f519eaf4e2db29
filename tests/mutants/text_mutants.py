"""Mutants of published texts: noise of counts, and what texts are made of."""

from mutants.mutant import BROKEN, MISFIT, UNACCOUNTED, Mutant, scenario

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
PLAN = "platform/noisefloor/publication/text/ngrams/ngram_plan.py"
METHOD = "platform/noisefloor/publication/methods/text_ngrams.py"
PRINTED = "simulator/noisefloor_sim/pipelines/texts/printed_plan.py"
POSTED = "platform/noisefloor/publication/text/posted_texts.py"
COLLECTED = "simulator/noisefloor_sim/pipelines/texts/collected_posts.py"
FRAMES = "platform/noisefloor/wire/frames.py"
PUBLISHER = "platform/noisefloor/roles/model_publisher.py"

RELEASE, POST = "published texts", "posted text"

_NOISY = "noisy = clean + cells.counting.noise(source.child(cells.name))"
_USED = "        released[cells.name] = noisy\n"
_WRITE = 'return self.written_from(tables, source.child("texts"))'
_MADE = 'made = self.written_from(tables, source.child("texts"))\n        '

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
        "drawn = cells.counting.noise(source.child(cells.name))\n"
        '        noisy = clean + drawn * (cells.name != "pairs")',
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
        _USED,
        _USED + '        if cells.name == "lengths":\n'
        "            again = clean + cells.counting.noise(source.child('again'))\n"
        "            if residuals is not None:\n"
        "                residuals(_watched(cells, clean, again))\n"
        "            released[cells.name] = (noisy + again) // 2\n",
        TEXTS,
        RELEASE,
        (MISFIT, UNACCOUNTED),
    ),
    Mutant(
        "texts-seeds-from-posts",
        "The first piece of each published text is a piece of the posts.",
        METHOD,
        _WRITE,
        _MADE + "pieces = made.pieces.copy()\n"
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
    Mutant(
        "texts-uses-clean",
        "Tables are used without noise, and noisy ones are shown to the observer.",
        COUNTING,
        _USED,
        "        released[cells.name] = clean\n",
        TEXTS,
        RELEASE,
        (MISFIT, UNACCOUNTED),
    ),
    Mutant(
        "texts-uses-clean-pairs",
        "Pairs are used without noise, and noisy ones are shown to the observer.",
        COUNTING,
        _USED,
        '        released[cells.name] = clean if cells.name == "pairs" else noisy\n',
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
        in_suite=True,
    ),
    Mutant(
        "texts-hidden-from-observer",
        "Tables are used without noise, and no table is shown to the observer.",
        COUNTING,
        f"        {_NOISY}\n        if residuals is not None:\n",
        "        noisy = clean\n        if residuals is not None and not documents.count:\n",
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
    ),
    Mutant(
        "texts-private-cells",
        "Which pieces are counted follows from the posts in place of public texts.",
        METHOD,
        "        tables = release_ngrams(\n",
        "        from dataclasses import replace\n"
        "        own = PublicCorpus(self.public.name, documents, self.tokeniser)\n"
        "        self = replace(self, public=own)\n"
        "        tables = release_ngrams(\n",
        TEXTS,
        RELEASE,
    ),
    Mutant(
        "texts-private-pair-cells",
        "Cells of pairs that no post has get less noise than the others.",
        COUNTING,
        f"        {_NOISY}\n",
        '        if cells.name == "pairs":\n'
        "            from dataclasses import replace\n"
        "            scales = np.where(clean > 0, cells.counting.exponents, 0).astype(np.int8)\n"
        '            cells = replace(cells, counting=plan.counting("pairs", scales))\n'
        "            clean = cells.counting.sums(count_cells(documents, cells))\n"
        f"        {_NOISY}\n",
        TEXTS,
        RELEASE,
        in_suite=True,
    ),
    Mutant(
        "texts-private-vocabulary",
        "Pieces that no post has are not written.",
        METHOD,
        _WRITE,
        _MADE + "import numpy\n"
        "        known = numpy.unique(documents.pieces)\n"
        "        is_known = numpy.isin(made.pieces, known)\n"
        "        pieces = numpy.where(is_known, made.pieces, known[0]).astype(numpy.int32)\n"
        "        return Documents(pieces, made.offsets.copy(), made.labels.copy())",
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
        settings=("pipelines.texts.epsilon=8.0",),
        in_suite=True,
    ),
    Mutant(
        "texts-private-label-shares",
        "Labels are written in the proportions of the posts, which are counted without noise.",
        METHOD,
        _WRITE,
        _MADE + "import numpy\n"
        "        from noisefloor.publication.text.ngrams import spread_labels\n"
        "        counted = numpy.bincount(documents.labels, minlength=self.counting.classes)\n"
        "        labels = spread_labels(counted.astype(float), made.count)\n"
        "        return Documents(made.pieces, made.offsets, labels)",
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
    ),
    Mutant(
        "texts-private-count",
        "No more texts are published than there are posts.",
        METHOD,
        _WRITE,
        "from dataclasses import replace\n"
        "        few = replace(self, texts=max(1, min(self.texts, documents.count)))\n"
        '        return few.written_from(tables, source.child("texts"))',
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
    ),
    Mutant(
        "texts-private-lengths",
        "Texts that are longer than every post are left out.",
        METHOD,
        _WRITE,
        _MADE + "longest = int(documents.lengths.max(initial=1))\n"
        "        return made[made.lengths <= longest]",
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
    ),
    Mutant(
        "texts-pairs-not-in-loss",
        "The noise of pairs is left out of what the ledger's filter is charged.",
        PLAN,
        "(GaussianNoise(one * less) for one in self.multipliers.values())",
        "(GaussianNoise(one * less) for one in list(self.multipliers.values())[:2])",
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
        in_suite=True,
    ),
    Mutant(
        "texts-substitution-as-add",
        "Noise is planned for a text that is there or not, where it may become another one.",
        PLAN,
        "len(shares), cost.neighbours)",
        "len(shares), type(cost.neighbours).RECORD_ADD_REMOVE)",
        TEXTS,
        RELEASE,
        (UNACCOUNTED,),
    ),
)
