"""Without these, the documents would drift away from the program: dead links, bounds and key kinds
no user can look up, and traces of one machine in public pages.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from tests.support.error_kinds import every_kind
from tools.reference_pages import DOCS, PAGES, ROOT
from typer.main import get_command

from armillary import limits
from armillary.cli import app
from armillary.config import VARIABLES
from armillary.server.command import parser
from armillary.steps import STEPS
from armillary.store.rows import layout

DECISIONS = sorted((DOCS / "decisions").glob("*.md"))


def repository_files() -> list[Path]:
    """Everything a clone has or is about to have; without git (a source archive), everything."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
        paths = [ROOT / name for name in listed.decode().split("\0") if name]
    except (FileNotFoundError, subprocess.CalledProcessError):
        paths = [path for path in ROOT.rglob("*") if not _hidden(path)]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def _hidden(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return any(part == "__pycache__" or (part[0] == "." and part != ".ci") for part in parts)


FILES = repository_files()
PAGES_OF_THE_REPOSITORY = [path for path in FILES if path.suffix == ".md"]


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# --- pages and what they name -------------------------------------------------------------------


@pytest.mark.parametrize("command", ["make run", "make test"])
def test_the_readme_names_the_two_commands(command: str) -> None:
    assert re.search(rf"^{command}\b", read(ROOT / "README.md"), re.MULTILINE)


def test_the_readme_has_a_picture_that_exists() -> None:
    pictures = re.findall(r"!\[.+?\]\((.+?)\)", read(ROOT / "README.md"))
    assert pictures
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", read(ROOT / "README.md"), re.M | re.S)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("42 ")


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_fresh(name: str) -> None:
    assert read(DOCS / name) == PAGES[name](), "run `make docs`"


def test_every_limit_is_documented() -> None:
    page = read(DOCS / "limits.md")
    named = {name for name in vars(limits) if name.isupper()} - {"KB", "MB", "GB"}
    assert {name for name in named if f"| `{name}` |" not in page} == set()


def test_every_step_is_documented() -> None:
    page = read(DOCS / "steps.md")
    assert [name for name in STEPS if f"| `{name}` | {STEPS[name]} |" not in page] == []


def test_every_setting_is_documented() -> None:
    page = read(DOCS / "settings.md")
    assert [name for name in VARIABLES if f"| `{name}` |" not in page] == []


def test_every_error_is_documented() -> None:
    page = read(DOCS / "errors.md")
    assert [kind for kind in every_kind() if f"| `{kind.__name__}` |" not in page] == []


def key_kinds() -> dict[str, bytes]:
    return {
        name: code
        for name, code in vars(layout).items()
        if name.isupper()
        and isinstance(code, bytes)
        and name not in ("META_KEY", "PACKED", "SEALED")
    }


def test_every_kind_of_key_is_documented_with_its_code() -> None:
    assert len(key_kinds()) >= 11
    page = read(DOCS / "formats.md")
    rows = [f"| `{name}` | `{code.hex()}` |" for name, code in key_kinds().items()]
    assert [row for row in rows if row not in page] == []


def test_no_two_kinds_of_key_share_a_code() -> None:
    assert len(set(key_kinds().values())) == len(key_kinds())


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_says_problem_choice_and_alternatives(path: Path) -> None:
    assert re.fullmatch(r"\d{4}-[a-z0-9-]+", path.stem)
    headings = re.findall(r"^## (.+)$", read(path), re.MULTILINE)
    wanted = ["Problem", "Choice", "Alternatives"]
    assert [heading for heading in headings if heading in wanted] == wanted


def test_there_are_decisions_and_each_has_its_own_number() -> None:
    numbers = [path.stem[:4] for path in DECISIONS]
    assert len(numbers) >= 3
    assert len(set(numbers)) == len(numbers)


# --- links --------------------------------------------------------------------------------------


def broken_links(page: Path) -> Iterator[str]:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", read(page), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = unquote(target).partition("#")
        goal = page.parent / file if file else page
        if not goal.exists():
            yield f"{target}: no such file"
        elif anchor and anchor not in anchors(goal):
            yield f"{target}: no such heading"


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", read(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", PAGES_OF_THE_REPOSITORY, ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_relative_link_resolves(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_a_planted_dead_link_is_caught(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title\n[ok](#a-title) [web](https://example.org) `[code](nowhere)`\n"
        "```\n[example](nowhere.md)\n```\n[dead](nowhere.md) [deaf](page.md#nothing)\n"
    )
    assert list(broken_links(page)) == [
        "nowhere.md: no such file",
        "page.md#nothing: no such heading",
    ]


# --- traces -------------------------------------------------------------------------------------

# Written in pieces, so that this file does not find itself.
TRACES = tuple(
    "".join(pieces)
    for pieces in (
        ("/wo", "rk/"),
        ("/ro", "ot/"),
        ("/ho", "me/"),
        ("/Us", "ers/"),
        ("py", "pi.org"),
        ("python", "hosted.org"),
        ("npm", "js.org"),
    )
)


def traces(path: Path) -> list[str]:
    data = path.read_bytes()
    if b"\0" in data:
        return []
    text = data.decode("utf-8")
    return [trace for trace in TRACES if trace in text]


def test_no_file_names_a_machine_path_or_a_package_registry() -> None:
    assert len(FILES) > 20
    found = {str(path.relative_to(ROOT)): traces(path) for path in FILES}
    assert {name: hits for name, hits in found.items() if hits} == {}


COMMAND = re.compile(r"(?<![\w/.-])armillary ([a-z]+(?: [^`\n|]*)?)")
OPTION = re.compile(r"(?<!\S)--[a-z][a-z0-9-]*")


def options_of(line: str) -> tuple[set[str], set[str]]:
    """(those that a line of a page gives, those that its command has)."""
    words = re.split(r"  | # | > ", line)[0].split()
    given = set(OPTION.findall(" ".join(words)))
    if words[0] == "serve":
        return given, {one for action in parser()._actions for one in action.option_strings}
    command = get_command(app)
    while words and words[0] in (inner := getattr(command, "commands", {})):
        command = inner[words.pop(0)]
    return given, {"--help", *(one for option in command.params for one in option.opts)}


def test_every_option_on_a_page_exists() -> None:
    pages = [one for one in PAGES_OF_THE_REPOSITORY if one.name != "CHANGELOG.md"]
    lines = [(page, line) for page in pages for line in COMMAND.findall(read(page))]
    told = [(page, line, *options_of(line)) for page, line in lines]
    assert sum(bool(given) for _, _, given, _ in told) >= 40
    found = [(str(page), line) for page, line, given, has in told if given - has]
    assert found == []
    given, has = options_of("partitions --data x --nonsense")
    assert given - has == {"--nonsense"}


#: As readers met them, and what is said now.
STUMBLED_OVER = {
    "lists what it can": "lists the commands",
    "beside others": "alternatives",
    "asked wrongly": "invalid usage",
    "items are in.": "Imported … items",
    "what came of it": "results",
    "nothing asked yet": "No query run yet",
    "this can't be asked": "Invalid query",
    "without it: one of its own": "Default: starts its own server",
    "contact support": "what to do",
    "a upsert": "an upsert",
    " 1 lines": "1 line",
    " 1 items": "1 item",
    " 1 partitions": "1 partition",
}


def test_no_text_says_what_readers_stumbled_over() -> None:
    sources = [one for one in FILES if "src" in one.parts and one.suffix == ".py"]
    pages = [one for one in PAGES_OF_THE_REPOSITORY if one.name != "CHANGELOG.md"]
    found = {
        str(path.relative_to(ROOT)): said
        for path in (*sources, *pages)
        for said in STUMBLED_OVER
        if said in read(path).lower()
    }
    assert found == {}


def test_nothing_is_installed_by_a_name_that_no_registry_has_yet() -> None:
    """`pip install armillary` fails until it is published: a checkout or the wheel works."""
    asked = re.compile(r"pip install[^\n`]*[ '\"]armillary(?![-\w])")
    assert asked.search("RUN pip install --quiet 'armillary[portal]'")
    pages = [*PAGES_OF_THE_REPOSITORY, *(one for one in FILES if "examples" in one.parts)]
    found = [one for one in pages if one.name != "CHANGELOG.md" and asked.search(read(one))]
    assert found == []


@pytest.mark.parametrize("trace", TRACES)
def test_a_planted_trace_is_caught(tmp_path: Path, trace: str) -> None:
    (tmp_path / "x").write_text(f"see {trace}x", encoding="utf-8")
    assert traces(tmp_path / "x") == [trace]


LOCKS = ("requirements.lock", "requirements.run.lock", "requirements.floors.lock")


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_names_no_place_and_hashes_everything(name: str) -> None:
    lock = read(ROOT / name)
    assert "://" not in lock
    assert not re.search(r"^\s*-(?!-hash)", lock, re.MULTILINE)
    packages = re.split(r"^(?=[a-z0-9])", lock, flags=re.MULTILINE)[1:]
    assert len(packages) > 20
    assert [package for package in packages if "--hash=sha256:" not in package] == []


def test_what_runs_is_what_is_tested() -> None:
    """`make run` installs a part of what `make test` does, in the same versions."""
    tested, run = (
        set(re.findall(r"^[a-z0-9][^ ;]*==[^ ;]+", read(ROOT / name), re.MULTILINE))
        for name in LOCKS[:2]
    )
    assert run < tested
