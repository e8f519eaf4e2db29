"""How taggers call the kinds of entities: OntoNotes, CoNLL, and the extended names of GiNZA."""

from noisefloor.publication.text.entities.mentions import EntityKind

_LABELS = {
    EntityKind.PERSON: "person per character",
    EntityKind.LOCATION: "gpe loc fac location city country county province island river mountain "
    "lake sea bay station airport road park bridge port line_other domestic_region "
    "continental_region gpe_other location_other facility_other postal_address region_other "
    "geological_region_other spa canal tunnel worship_place theater museum zoo",
    EntityKind.ORGANISATION: "org organisation organization company company_group "
    "corporation_other school government political_party political_organization_other "
    "public_institution research_institute military international_organization show_organization "
    "pro_sports_organization sports_organization_other sports_league organization_other cabinet "
    "goe_other",
    EntityKind.DATE: "date time period_year period_month period_week period_day period_time era "
    "day_of_week timex_other periodx_other",
    EntityKind.NUMBER: "cardinal ordinal money percent quantity number numex_other ordinal_number "
    "age phone_number id_number physical_extent weight volume temperature speed space "
    "multiplication frequency rank point countx_other measurement_other n_person n_organization "
    "n_country n_facility n_event",
    EntityKind.EMAIL: "email",
    EntityKind.HANDLE: "handle",
}

KIND_OF_LABEL = {label: kind for kind, names in _LABELS.items() for label in names.split()}
"""By the label in lower case; works of art, nationalities and the like are no kind of ours."""


def kind_of(label: str) -> EntityKind | None:
    """Return the kind of a label, with or without the mark of its place in a span; or None."""
    plain = label.lower()
    bare = plain[2:] if plain[:2] in ("b-", "i-", "e-", "s-", "l-", "u-") else plain
    return KIND_OF_LABEL.get(bare)
