"""What ``noisefloor publish``, ``fetch`` and ``predict`` do, behind the command line."""

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from noisefloor.cards import TrustedKeys
from noisefloor.errors import (
    BadParameter,
    BadPublicationStore,
    BadSnapshot,
    BadTable,
    MissingData,
    MissingExtra,
    UnknownKey,
    UnsignedCard,
)
from noisefloor.privacy import Neighbours
from noisefloor.publication import check_release, load_model
from noisefloor.publication.fine_tuning import (
    is_text_model,
    load_text_model,
    shared_backbone,
    tokenise,
)
from noisefloor.publication.text import load_tokeniser, read_documents, text_column
from noisefloor.publication.text.language_models import language_model_folder
from noisefloor.roles import Artefact, ReleaseRequest, has_failed, write_once
from noisefloor.tables import TextRecords, TextSchema, check_texts, load_table
from noisefloor_sim.cli.expected_accuracy import ExpectedAccuracy, expected_accuracy
from noisefloor_sim.cli.progress import counting_bar, spinner, task_display
from noisefloor_sim.cli.publication_targets import (
    PriceTag,
    PublicationTarget,
    TargetOptions,
    found_publication,
)
from noisefloor_sim.cli.published_data import RELATIONS, PublishedData, RequestOptions, relation_of

ARTEFACT, TEXTS, CARD = ".safetensors", ".jsonl", ".card.json"


def publish(
    named: str,
    asked: RequestOptions,
    target: PublicationTarget,
    *,
    neighbours: str | None,
    is_dry: bool,
    as_json: bool,
) -> int:
    """Publish from a data set, or say what that would cost, and return the exit code."""
    data = PublishedData(named)
    data.check_file()  # what the user has to write comes before what has to be set up
    relation = _relation(target, data, neighbours)
    request = asked.request(data.name, relation)
    if is_dry:
        return _dry_run(target, request, data, as_json=as_json)
    with task_display() as display:
        display.tell("publishing")
        was_there = _is_there(target, request)
        made = target.publish(request, data, display)
    if as_json:
        print(json.dumps({"is_new": not was_there, "card": made.card}, indent=2))
    else:
        _tell_published(target, request, made, was_there=was_there)
        _tell_cut(data, made)
    return 0


def fetch(
    publication_id: str,
    target: PublicationTarget,
    *,
    data_set: str | None,
    out: Path,
    key: Path | None,
    unsigned: bool,
) -> int:
    """Write a publication and its card into a folder, once its publisher signed for it."""
    _, made = found_publication(target, publication_id, data_set)
    check_signed(made, key or target.key, unsigned=unsigned)
    if made.card.get("publication_id") != publication_id:
        # An honest release under another name has an honest signature.
        raise BadSnapshot(f"{target.where}: the card is of another publication than was fetched.")
    suffix = TEXTS if made.card.get("format") == "jsonl" else ARTEFACT
    file, card = out / f"{publication_id}{suffix}", out / f"{publication_id}{CARD}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for path, content in ((file, made.content), (card, made.card_bytes + b"\n")):
            if write_once(path, content) != content:
                rule = "not to be there, or the same: it is another file. Name another --out"
                raise BadParameter("out", str(path), rule)
    except OSError as error:
        raise BadParameter("out", str(out), f"writable ({error.strerror})") from None
    print(f"{file}: {len(made.content):,} bytes")
    print(f"{card}: {'not checked (--unsigned)' if unsigned else 'signed by its publisher'}")
    return 0


def predict(
    model: Path,
    rows: str,
    options: TargetOptions,
    *,
    key: Path | None,
    out: Path | None,
    unsigned: bool,
    backbone: Path | None = None,
) -> int:
    """Predict the label of each row of a table by a fetched model, and write it as CSV."""
    file = _model_file(model)
    card = file.with_name(file.name.removesuffix(ARTEFACT) + CARD)
    try:
        content, document = file.read_bytes(), card.read_bytes()
    except OSError as error:
        rule = f"a model with its card beside it ({CARD}), as noisefloor fetch writes them"
        raise BadParameter("model", str(model), f"{rule}: {error.strerror}") from None
    trusted = () if unsigned else key or _own_key(options)
    if is_text_model(content):
        return _predict_texts(content, document, trusted, rows, backbone, out, unsigned=unsigned)
    with _named_options():
        loaded = load_model(content, document, trusted, unsigned=unsigned)
    columns = load_table(rows, loaded.encoding.columns)
    table: dict[str, Any] = dict(columns)  # Any: arrays of whatever the columns hold
    try:
        predicted = loaded.predict(table)
    except BadTable as error:
        raise BadTable(rows, error.rule, error.column) from None
    _write_column(loaded.encoding.label, predicted, out)
    return 0


def _predict_texts(
    content: bytes,
    document: bytes,
    trusted: TrustedKeys,
    rows: str,
    backbone: Path | None,
    out: Path | None,
    *,
    unsigned: bool,
) -> int:
    """Predict the label of each text of a table, and write it as CSV."""
    with _named_options():
        check_release(content, document, trusted, unsigned=unsigned)  # before anything is loaded
        loaded = load_text_model(
            content,
            document,
            trusted,
            backbone=backbone or shared_backbone(),
            unsigned=unsigned,
        )
    names = tuple(loaded.file.schema.texts)
    columns = load_table(rows, names, texts=names)
    texts = {name: check_texts(columns[name], rows, name) for name in names}
    with counting_bar() as bar:
        task = bar.add_task("predicting", total=len(texts[names[0]]))
        predicted = loaded.predict(
            {name: list(column) for name, column in texts.items()},
            lambda done: bar.advance(task, done),
        )
    _write_column(loaded.file.schema.label, predicted, out)
    return 0


def _tell_cut(data: PublishedData, made: Artefact) -> None:
    """Tell the holder of texts how many were cut; it is in no release."""
    if not data.is_file or not isinstance(data.schema, TextSchema):
        return
    records = data.records
    if not isinstance(records, TextRecords):
        return
    for name, cut in _cut_counts(records, made.card).items():
        longest = records.schema.texts[name]
        print(
            f"{name}: {cut:,} of {records.count:,} texts are longer than {longest} pieces and "
            "were cut (known to you alone)"
        )


def _cut_counts(records: TextRecords, card: Mapping[str, Any]) -> Mapping[str, int]:
    """Return how many texts of each column were cut, by the tokeniser that a release names."""
    if "language_model" not in card:
        return tokenise(shared_backbone(), records.schema, records.texts).cut
    try:
        folder = language_model_folder(card["language_model"]["name"])
    except (BadParameter, MissingData, MissingExtra):
        return {}  # a publisher elsewhere has it, and this machine does not
    name, longest = text_column(records.schema)
    one_more = replace(records.schema, texts={name: longest + 1})
    documents = read_documents(replace(records, schema=one_more), load_tokeniser(folder))
    return {name: int((documents.lengths > longest).sum())}


def _own_key(options: TargetOptions) -> TrustedKeys:
    """Return the key of the publisher of this machine, where none was named."""
    try:
        with options.opened() as target:
            return target.key or ()
    except BadPublicationStore:
        return ()  # a recipient has no store: the card's refusal says what is needed


def check_signed(made: Artefact, key: Path | None, *, unsigned: bool) -> None:
    """Refuse an artefact whose card its publisher did not sign, or that is of another file."""
    with _named_options():
        check_release(made.content, made.card_bytes, key or (), unsigned=unsigned)


@contextmanager
def _named_options() -> Iterator[None]:
    """Let refusals of cards name the options of the command."""
    try:
        yield
    except UnsignedCard as error:
        raise UnsignedCard(str(error).replace("unsigned=True", "--unsigned")) from None
    except UnknownKey as error:
        raise UnknownKey(f"{error} Name its file by --key.") from None


def _relation(
    target: PublicationTarget, data: PublishedData, neighbours: str | None
) -> Neighbours:
    """Return the relation that was named, or that of the data set's budget."""
    if neighbours is not None:
        return relation_of(neighbours)
    return target.relation(data.name) or RELATIONS[0]


def _is_there(target: PublicationTarget, request: ReleaseRequest) -> bool:
    """Tell whether a publication is stored already."""
    found = target.artefact(request.data_set, request.publication_id)
    return found is not None and not has_failed(found)


def _dry_run(
    target: PublicationTarget, request: ReleaseRequest, data: PublishedData, *, as_json: bool
) -> int:
    """Say what a request would cost and what to expect of it; nothing is spent or drawn."""
    price = target.preview(request, data)
    with spinner() as bar:
        task = bar.add_task("trying the plan on stand-in records", total=None)
        done: Callable[[int, int], None] = lambda made, of: bar.update(  # noqa: E731  one line
            task, description=f"trying the plan on stand-in records ({made} of {of})"
        )
        expected = expected_accuracy(request, data, done)
    if as_json:
        print(json.dumps(_as_json(target, request, price, expected), indent=2))
    else:
        _tell_price(target, request, price)
        for line in expected.lines:
            print(f"expect: {line}")
    return 0 if price.is_allowed else 1


def _as_json(
    target: PublicationTarget, request: ReleaseRequest, price: PriceTag, expected: ExpectedAccuracy
) -> dict[str, Any]:  # Any: JSON
    amounts = {"cost": price.cost, "left": price.left, "after": price.after}
    return {
        "dry_run": True,
        "publisher": target.where,
        "publication_id": request.publication_id,
        "data_set": request.data_set,
        "method": request.method,
        "is_paid": price.is_paid,
        "is_allowed": price.is_allowed,
        **{name: {"epsilon": one.epsilon, "delta": one.delta} for name, one in amounts.items()},
        "why": price.why,
        "expected": expected.fields,
    }


def _tell_price(target: PublicationTarget, request: ReleaseRequest, price: PriceTag) -> None:
    print(f"dry run of {request.publication_id} ({target.where}): nothing was spent or drawn")
    if price.is_paid:
        print("cost: nothing, it was charged before and may be repeated")
    else:
        verdict = "accepted" if price.is_allowed else f"refused ({price.why})"
        print(f"cost: {price.cost} of the budget of {request.data_set}; it would be {verdict}")
    print(f"left: {price.left} now, {price.after} after it")


def _tell_published(
    target: PublicationTarget, request: ReleaseRequest, made: Artefact, *, was_there: bool
) -> None:
    name, size = request.publication_id, len(made.content)
    if was_there:
        print(f"{name}: was published before; the same {size:,} bytes, and nothing was charged")
        print("a new release of the data needs another --id, and is charged")
    else:
        print(f"{name}: published from {request.data_set} by {request.method}, {size:,} bytes")
    print(f"guarantee: {made.card.get('guarantee')}")
    ledger = made.card.get("ledger") or {}
    cost, total = ledger.get("cost", {}), ledger.get("total_so_far", {})
    if ledger:
        print(
            f"charged: {_amount(cost)}; with it {_amount(total)} of {request.data_set} is spent "
            f"(record {ledger.get('position')} of its ledger)"
        )
    print(f"fetch it by: noisefloor fetch {name}")


def _amount(fields: dict[str, Any]) -> str:  # Any: JSON
    delta = fields.get("delta") or 0
    return f"epsilon {fields.get('epsilon'):g}" + (f", delta {delta:.3g}" if delta else "")


def _model_file(model: Path) -> Path:
    """Return the file of a model: as named, or the only one in a folder."""
    if not model.is_dir():
        return model
    found = sorted(model.glob(f"*{ARTEFACT}"))
    if len(found) != 1:
        rule = f"a file, or a folder with one file that ends in {ARTEFACT}; it has {len(found)}"
        raise BadParameter("model", str(model), rule)
    return found[0]


def _write_column(name: str, values: list[Any], out: Path | None) -> None:  # Any: of the label
    """Write one column as CSV, to a file or to standard output."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([name])
    writer.writerows([value] for value in values)
    if out is None:
        sys.stdout.write(text.getvalue())
        return
    try:
        out.write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise BadParameter("out", str(out), f"writable ({error.strerror})") from None
    print(f"{out}: {len(values):,} predictions of {name}")
