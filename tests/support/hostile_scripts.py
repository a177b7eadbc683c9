"""Two hundred scripts that mean harm: each attack in five places of a run."""

from __future__ import annotations

from typing import Final

#: Attack → what it may come to when it stands in the body of the function.
#: "time": the bound on time; "throws": an error of the script; "fine": nothing happens.
ATTACKS: Final[dict[str, tuple[str, set[str]]]] = {
    "loop": ("while (true) {}", {"time"}),
    "for": ("for (;;);", {"time"}),
    "caught loop": ("try { while (true) {} } catch (e) {} finally { while (true) {} }", {"time"}),
    "generator": ("function* g() { while (true) yield 1; } for (const x of g());", {"time"}),
    "getter loop": ("({ get x() { while (true) {} } }).x;", {"time"}),
    "proxy loop": ("new Proxy({}, { get() { while (true) {} } }).x;", {"time"}),
    "sort that never ends": ("[2, 1].sort(() => { while (true) {} });", {"time"}),
    "bad regular expression": ("/^(a+)+$/.test('a'.repeat(40) + 'b');", {"time", "fine"}),
    "replace in a loop": ("'a'.replace(/a/, () => { while (true) {} });", {"time"}),
    "large sort": (
        "const a = []; for (let i = 0; i < 3e5; i++) a.push(i * 7919 % 1e6);"
        " while (true) a.sort();",
        {"time", "throws"},
    ),
    # Each link is kept by the one before it: a quick machine reaches the bound on memory first,
    # which ends the chain as a rejection that nobody looks at.
    "promise chain": ("const p = () => Promise.resolve().then(p); p();", {"time", "fine"}),
    "async loop": ("(async () => { while (true) await 1; })();", {"time"}),
    "microtask fork": (
        "const f = () => { Promise.resolve().then(f); Promise.resolve().then(f); }; f();",
        {"time", "throws"},
    ),
    "thenable": ("Promise.resolve({ then(r) { r(this); } });", {"time"}),
    "array bomb": ("const a = []; while (true) a.push(a.length);", {"throws", "time"}),
    "object bomb": ("const a = []; while (true) a.push({a: {b: {}}});", {"throws", "time"}),
    "string bomb": ("let s = 'x'; while (true) s += s;", {"throws"}),
    "string pieces": (
        "const a = []; while (true) a.push('x'.repeat(1e6) + a.length);",
        {"throws", "time"},
    ),
    "buffer bomb": ("const a = []; while (true) a.push(new Uint8Array(1 << 20));", {"throws"}),
    "one huge buffer": ("new ArrayBuffer(2 ** 40);", {"throws"}),
    "huge array": ("new Array(2 ** 32 - 1).fill(1);", {"throws", "time"}),
    "map bomb": ("const m = new Map(); while (true) m.set({}, m.size);", {"throws", "time"}),
    "bigint bomb": ("let n = 2n; while (true) n = n ** 2n;", {"throws", "time"}),
    "closure bomb": (
        "let f = () => 1; while (true) { const g = f; f = () => g; }",
        {"throws", "time"},
    ),
    "recursion": ("const f = () => f(); f();", {"throws"}),
    "recursion caught": (
        "const f = () => { try { f(); } catch (e) { f(); } }; f();",
        {"throws", "time"},
    ),
    "deep JSON": ("JSON.parse('['.repeat(1e6));", {"throws"}),
    "deep object": (
        "let o = {}; for (let i = 0; i < 1e6; i++) o = {o}; JSON.stringify(o);",
        {"throws"},
    ),
    "many arguments": ("Math.max.apply(null, new Array(1e6).fill(1));", {"throws"}),
    "cyclic body": ("const o = {}; o.o = o; getContext().getResponse().setBody(o);", {"throws"}),
    "huge body": ("getContext().getResponse().setBody('x'.repeat(3e6));", {"throws"}),
    "body that bites": (
        "getContext().getResponse().setBody({ toJSON() { while (true) {} } });",
        {"time"},
    ),
    "polluted prototypes": (
        "Object.prototype.toJSON = () => 1; Array.prototype.push = null; JSON.stringify = null;",
        {"fine", "throws"},
    ),
    "broken JSON": ("JSON.parse = JSON.stringify = () => { throw 1; };", {"fine"}),
    "setters on arrays": (
        "Object.defineProperty(Array.prototype, '0', { set() { throw 5; } });",
        {"fine", "throws"},
    ),
    "files": ("require('fs').readFileSync('/etc/passwd');", {"throws"}),
    "modules": ("import('os').then((m) => m.remove('/tmp/x'));", {"fine", "throws"}),
    "engine's own modules": ("std.open('/etc/passwd', 'r'); os.exec(['id']);", {"throws"}),
    "network": ("fetch('http://localhost:8081'); new XMLHttpRequest();", {"throws"}),
    "a hundred thousand operations": (
        "for (let i = 0; i < 1e5; i++) __.readDocument(__.getAltLink() + '/docs/' + i, () => 1);",
        {"fine", "time"},
    ),
}
PLACES: Final = {
    "body": "function () { %s }",
    "callback": "function () { __.readDocuments(__.getSelfLink(), function () { %s }); }",
    "promise": "function () { Promise.resolve().then(function () { %s }); }",
    "async": "function () { (async () => { await 1; %s })().catch((e) => getContext().abort(e)); }",
    "top level": "function () {}; %s",
}


def hostile() -> list[tuple[str, str, set[str]]]:
    """(name, text, what it may come to)"""
    found = []
    for attack, (line, outcomes) in ATTACKS.items():
        for place, text in PLACES.items():
            allowed = outcomes if place == "body" else {"time", "throws", "fine"}
            found.append((f"{attack}, {place}", text.replace("%s", line), allowed))
    return found
