"""The public domains of data sets that are known by name, as their documentation states them."""

from types import MappingProxyType

from noisefloor.tables.data_sets import ADULT, IONOSPHERE, MOVIELENS_100K
from noisefloor.tables.schema import Bins, Categories, Schema


def _numbers(low: int, high: int) -> Categories:
    return Categories(tuple(range(low, high + 1)))


def _texts(*lines: str) -> Categories:
    return Categories(tuple(" ".join(lines).split()))


_ADULT = Schema(
    "one person's census record",
    {
        "age": Bins(tuple(range(10, 101, 10))),
        "workclass": _texts(
            "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc",
            "State-gov Without-pay",
        ),
        "education": _texts(
            "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college",
            "Assoc-voc Assoc-acdm Bachelors Masters Prof-school Doctorate",
        ),
        "educational-num": _numbers(1, 16),
        "marital-status": _texts(
            "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married",
            "Separated Widowed",
        ),
        "occupation": _texts(
            "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing",
            "Handlers-cleaners Machine-op-inspct Other-service Priv-house-serv Prof-specialty",
            "Protective-serv Sales Tech-support Transport-moving",
        ),
        "relationship": _texts(
            "Husband Not-in-family Other-relative Own-child Unmarried Wife",
        ),
        "race": _texts("Amer-Indian-Eskimo Asian-Pac-Islander Black Other White"),
        "gender": _texts("Female Male"),
        "capital-gain": Bins((0, 1, 2_000, 5_000, 10_000, 20_000, 100_000)),
        "capital-loss": Bins((0, 1, 1_000, 2_000, 3_000, 5_000)),
        "hours-per-week": Bins(tuple(range(0, 101, 10))),
        "native-country": _texts(
            "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador",
            "England France Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong",
            "Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico Nicaragua",
            "Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland",
            "South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
        ),
        "income": _texts("<=50K >50K"),
    },
    label="income",
)

PUBLIC_SCHEMAS = MappingProxyType(
    {
        MOVIELENS_100K.name: Schema(
            "one rating of one film by one user (a user has 20 or more)",
            {"movie_id": _numbers(1, 1682), "rating": _numbers(1, 5)},
        ),
        ADULT.name: _ADULT,
        IONOSPHERE.name: Schema(
            "one radar return",
            {
                "a1": _numbers(0, 1),
                **{
                    f"a{number}": Bins(tuple(at / 4 for at in range(-4, 5)))
                    for number in range(3, 35)
                },
                "y": _texts("b g"),
            },
            label="y",
        ),
    }
)
"""By the name of the data set."""
