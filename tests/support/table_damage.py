"""Entities, filters and batches of the Table API that are whole but odd: the framing is right, what
is inside may be of any type, size and name. `fuzz_mutations.py` cuts bytes; this builds values."""

from __future__ import annotations

import json
from random import Random
from typing import Final
from urllib.parse import quote

TYPES: Final = (
    *("Edm.String", "Edm.Int32", "Edm.Int64", "Edm.Double", "Edm.Boolean", "Edm.DateTime"),
    *("Edm.Guid", "Edm.Binary", "Edm.Null", "Edm.Decimal", "edm.string", "", "Edm."),
)
NAMES: Final = (
    *("n", "Text", "Timestamp", "PartitionKey", "RowKey", "odata.etag", "odata.type", "id", "_ts"),
    *("a b", "1st", "_x", "é", "x" * 255, "x" * 256, "n@odata.type", "@odata.type", "$id", ""),
    *("Timestamp@odata.type", "PartitionKey@odata.type", "n@odata", "odata.metadata", "a.b", "$pk"),
)
TEXTS: Final = (
    *(
        "",
        "x",
        "'",
        "''",
        "é",
        "\U0001f600",
        "\x00",
        "a\tb",
        "/",
        "\\",
        "#",
        "?",
        "p",
        "q",
        "%",
        " ",
    ),
    *("2024-01-02T03:04:05Z", "2024-01-02T03:04:05.1234567Z", "1600-12-31T23:59:59Z", "9999-99-99"),
    *("0001-01-01T00:00:00Z", "2024-02-30T00:00:00Z", "2024-01-02T03:04:05+99:99", "2024-01-02"),
    *("c9da6455-213d-42c9-9a79-3e9149a57833", "{c9da6455}", "AAEC", "AAE", "=", "A" * 4000),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "1" * 400, "1e5", "+1"),
    *("NaN", "Infinity", "-Infinity", "INF", "true", "null", "0x10", "5L", "x" * 40_000),
)
NUMBERS: Final = (
    *("0", "-0", "1", "-1", "2147483647", "2147483648", "-2147483649", "9007199254740993", "0.1"),
    *("9223372036854775808", "1e308", "1e309", "-1e309", "1e-400", "1.0", "1E0", "5e-324"),
    *("123456789012345678901234567890", "0." + "3" * 60, "1" + "0" * 400),
)
OPERATORS: Final = ("eq", "ne", "gt", "ge", "lt", "le", "EQ", "add", "like", "==")
FUNCTIONS: Final = ("startswith", "substringof", "length", "toupper", "year", "endswith")


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Odd:
    def __init__(self, random: Random) -> None:
        self._random = random

    # --- entities -------------------------------------------------------------------------------

    def value(self, depth: int = 0) -> str:
        """The text of one JSON value, which Python could not always have."""
        random = self._random
        match random.randrange(9 if depth < 3 else 7):
            case 0 | 1 | 2:
                return json.dumps(random.choice(TEXTS))
            case 3 | 4:
                return random.choice(NUMBERS)
            case 5:
                return random.choice(("true", "false", "null"))
            case 6:
                return random.choice(('"\\ud800"', '"\\u0000"', '"\\udc00\\ud800"', "[]", "{}"))
            case 7:
                return (
                    "[" + ",".join(self.value(depth + 1) for _ in range(random.randrange(3))) + "]"
                )
            case _:
                return self.entity(depth + 1)

    def entity(self, depth: int = 0, *, keys: tuple[str, str] | None = None) -> str:
        """`keys`: it has those; else any, or none."""
        random = self._random
        pairs: list[tuple[str, str]] = []
        if keys is not None:
            pairs += zip(("PartitionKey", "RowKey"), map(json.dumps, keys), strict=True)
        elif random.random() < 0.5:
            pairs += [("PartitionKey", self.value(3)), ("RowKey", self.value(3))]
        for _ in range(random.choice((0, 1, 2, 3, 5, 260 if depth == 0 else 1))):
            name = random.choice(NAMES) + random.choice(("", "", str(random.randrange(99))))
            pairs.append((name, self.value(depth + 1)))
            if random.random() < 0.6:
                pairs.append((f"{name}@odata.type", json.dumps(random.choice(TYPES))))
        if random.random() < 0.2:
            random.shuffle(pairs)
        return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in pairs) + "}"

    # --- filters --------------------------------------------------------------------------------

    def literal(self) -> str:
        random = self._random
        text = random.choice(TEXTS)[:200]
        match random.randrange(8):
            case 0 | 1:
                return quoted(text)
            case 2:
                return random.choice(NUMBERS)[:60] + random.choice(("", "", "L", "l", "M", "f"))
            case 3:
                return random.choice(("datetime", "guid", "binary", "X", "time", "")) + quoted(text)
            case 4:
                return random.choice(("true", "false", "null", "TRUE"))
            case 5:
                return f"{random.choice(FUNCTIONS)}({self.operand()},{quoted(text)})"
            case _:
                return self.operand()

    def operand(self) -> str:
        return self._random.choice(
            ("PartitionKey", "RowKey", "Timestamp", "n", "Text", "é", "x/y", "not", "and", "_x")
        )

    def condition(self, depth: int = 0) -> str:
        random = self._random
        match random.randrange(7 if depth < 5 else 3):
            case 0 | 1 | 2:
                operator = random.choice(OPERATORS[:6] * 4 + OPERATORS)
                return f"{self.operand()} {operator} {self.literal()}"
            case 3 | 4:
                joined = random.choice((" and ", " or ", " and ", " or ", " AND ", " xor ", " "))
                return joined.join(
                    self.condition(depth + 1) for _ in range(random.choice((2, 3, 20)))
                )
            case 5:
                return f"not ({self.condition(depth + 1)})"
            case _:
                deep = random.choice((1, 1, 2, 30, 600))
                return "(" * deep + self.condition(depth + 1) + ")" * deep

    def options(self) -> str:
        """Of a query of entities."""
        random = self._random
        found = [("$filter", self.condition())]
        if random.random() < 0.3:
            found.append(
                ("$top", random.choice(("1", "0", "-1", "1001", "x", "9" * 30, "", "1.5")))
            )
        if random.random() < 0.3:
            found.append(("$select", ",".join(random.choices(NAMES, k=random.choice((1, 2, 300))))))
        if random.random() < 0.2:
            found.append(("NextPartitionKey", random.choice(TEXTS)[:300]))
            found.append(("NextRowKey", random.choice(TEXTS)[:300]))
        return "&".join(f"{name}={quote(text, safe='')}" for name, text in found)

    # --- batches --------------------------------------------------------------------------------

    def batch(self, table: str) -> bytes:
        """Of one changeset; nearly all of its requests are of one partition, and go to `table`."""
        random = self._random
        count = random.choice((0, 1, 2, 3, 5, 101))
        parts = [self._part(table, number) for number in range(count)]
        inner, outer = "changeset_1", "batch_1"
        if random.random() < 0.1:
            inner = random.choice((outer, "", "x" * 70, "a b", '"q"'))
        lines = [f"--{outer}", f"Content-Type: multipart/mixed; boundary={inner}", ""]
        for part in parts:
            lines += [
                f"--{inner}", "Content-Type: application/http", "Content-Transfer-Encoding: binary",
                "", part,
            ]  # fmt: skip
        lines += [f"--{inner}--", f"--{outer}--", ""]
        return "\r\n".join(lines).encode("utf-8", "surrogatepass")

    def _part(self, table: str, number: int) -> str:
        random = self._random
        partition = random.choice(("p",) * 12 + ("other", ""))
        row = f"b{random.randrange(number + 3)}"
        target = random.choice((table,) * 12 + ("nope", "Tables", "$batch"))
        one = f"{target}(PartitionKey={quoted(partition)},RowKey={quoted(row)})"
        method = random.choice(("POST", "POST", "PUT", "PATCH", "MERGE", "DELETE", "GET", "HEAD"))
        where = target if method == "POST" else one
        host = random.choice(("http://h/", "http://h/", "/", "", "https://[::1]/", "ftp://x/"))
        head = [f"{method} {host}{where} HTTP/1.1", "Content-Type: application/json"]
        if random.random() < 0.4:
            head.append("If-Match: " + random.choice(("*", 'W/"x"', "", "W/\"datetime'x'\"")))
        if random.random() < 0.2:
            head.append(random.choice(("Prefer: return-content", "Content-Length: 99999", "X")))
        body = "" if method in ("DELETE", "GET", "HEAD") else self.entity(keys=(partition, row))
        return "\r\n".join([*head, "", body])
