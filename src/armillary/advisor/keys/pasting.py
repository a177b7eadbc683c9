"""What to paste: the container, the code of a synthetic key, the way from the old key."""

import json
from typing import Final

from armillary.advisor.keys.candidates import Candidate
from armillary.encoding.paths import Path, format_path
from armillary.keys.spec import Part

ENTITY_KEY: Final = 'entity["PartitionKey"]'


def python_text(candidate: Candidate, name: str = "items") -> str:
    """Creates the container with the official SDK, and writes and reads one item."""
    paths = ", ".join(repr(format_path(path)) for path in candidate.paths)
    key = f"PartitionKey(path={paths})"
    if len(candidate.paths) > 1:
        key = f'PartitionKey(path=[{paths}], kind="MultiHash")'
    lines = [
        "from azure.cosmos import PartitionKey",
        "",
        f"container = database.create_container({name!r}, {key})",
    ]
    if candidate.synthetic is None:
        return "\n".join(lines)
    spec = json.dumps(candidate.spec_json(), ensure_ascii=False)
    known = ", ".join(f'"{path[-1]}": …' for path in candidate.made_of)
    return "\n".join(
        [
            "import json",
            "",
            *lines[:1],
            "from armillary.keys import SyntheticKey",
            "from armillary.keys.cosmos import SyntheticContainer",
            "",
            *lines[2:],
            f"key = SyntheticKey.from_json(json.loads({spec!r}))",
            "items = SyntheticContainer(container, key)   # fills the key in, and finds it again",
            "items.create_item(item)",
            f"items.read_item(item_id, {{{known}}})",
        ]
    )


def plain_function(candidate: Candidate) -> str | None:
    """The same key without this package, for programs that can't have it."""
    key = candidate.synthetic
    if key is None:
        return None
    spec = key.spec
    parts = [_part(part) for part in spec.parts]
    imports: list[str] = []
    if spec.suffix is not None and spec.suffix.source is None:
        imports = ["import random", ""]
        parts.append(f"str(random.randint(1, {spec.suffix.k}))")
    elif spec.suffix is not None and spec.suffix.source is not None:
        imports = ["import mmh3", ""]
        source = _access(spec.suffix.source)
        parts.append(
            f"str(1 + mmh3.hash64(str({source}).encode(), 0, signed=False)[0] % {spec.suffix.k})"
        )
    body = f"{spec.separator!r}.join([{', '.join(parts)}])"
    return "\n".join([*imports, "def partition_key(item: dict) -> str:", f"    return {body}"])


def entity_text(candidate: Candidate) -> str:
    """Writes the key of an entity: in a table it is always PartitionKey."""
    if candidate.synthetic is not None:
        return f"{plain_function(candidate)}\n\n{ENTITY_KEY} = partition_key(entity)"
    values = ' + "-" + '.join(f"str(entity[{path[-1]!r}])" for path in candidate.paths)
    return f"{ENTITY_KEY} = {values}\ntable.upsert_entity(entity)"


def _part(part: Part) -> str:
    if part.bucket is None:
        return f"str({_access(part.path)})"
    cut = {"year": 4, "month": 7, "day": 10, "hour": 13, "minute": 16}[part.bucket]
    if part.unit == "iso":
        return f"{_access(part.path)}[:{cut}]"
    divisor = "" if part.unit == "seconds" else " / 1000"
    moment = f"__import__('datetime').datetime.utcfromtimestamp({_access(part.path)}{divisor})"
    return f"{moment}.isoformat()[:{cut}]"


def _access(path: Path) -> str:
    return "item" + "".join(f"[{name!r}]" for name in path)


def migration_text(candidate: Candidate, current: Candidate | None) -> list[str]:
    """Steps from the present key; nothing to do when it is the one."""
    if current is not None and current.name == candidate.name:
        return ["The container has this key already."]
    if current is not None and current.of_table:
        return [
            "PartitionKey and RowKey of an entity can't be changed in place: write the entities "
            "into a new table with the new PartitionKey, switch the application over, and delete "
            "the old table."
        ]
    key = " ".join(f"--key '{format_path(path)}'" for path in candidate.paths)
    if candidate.synthetic is not None:
        key = f"--synthetic '{json.dumps(candidate.spec_json(), ensure_ascii=False)}'"
    return [
        "A key can't be changed in place: items are copied into a new container.",
        f"armillary rekey OLD NEW {key} --cut-over",
        "It copies while the old one is used and follows its changes; when it has caught up, it "
        "closes the old one for writing and compares both. Then switch the application over.",
    ]
