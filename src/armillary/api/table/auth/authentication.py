"""Who sent this? SharedKey, SharedKeyLite, a shared access signature, a token of Entra ID.

    SharedKey      VERB ⏎ Content-MD5 ⏎ Content-Type ⏎ date ⏎ /account/path
    SharedKeyLite                                      date ⏎ /account/path

Both lines end with `?comp=…` if the request has that parameter. Clients differ in whether they sign
an apostrophe of the path as `'` or `%27`. Signatures are compared in constant time. Facts: table 2.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from armillary.api.core.principals import entra_principal
from armillary.api.http.messages import Request
from armillary.api.table.auth.callers import ENTRA, FULL, READ_ONLY, Caller
from armillary.api.table.auth.sas import Sas, check_times, verify_sas
from armillary.api.table.problems import refused
from armillary.api.table.settings import find_policy
from armillary.errors import Forbidden, Unauthorized

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from armillary.api.core.gateway import Gateway
    from armillary.errors import BadInput

SCHEMES: Final = ("SharedKey", "SharedKeyLite")
HEADER_CHARACTERS_MAX: Final = 16 * 1024
SIGNATURE_TEXT: Final = (
    "The MAC signature found in the HTTP request is not the same as the computed signature. "
    "Server used following string to sign: '{0}'"
)


def authenticate(
    gateway: Gateway,
    request: Request,
    path: str,
    parameters: Mapping[str, str],
    accounts: Sequence[str],
    *,
    storage: bool = False,
) -> Caller:
    """`path` as it was sent; `accounts`: the names by which we are known."""
    header = request.headers.get("authorization")
    if header:
        if len(header) > HEADER_CHARACTERS_MAX:
            raise unauthorized("The Authorization header is too long.")
        scheme, _, rest = header.partition(" ")
        if scheme in SCHEMES:
            return _by_key(gateway, request, path, parameters, scheme, rest)
        if scheme == "Bearer":
            try:
                entra_principal(gateway, rest.strip())
            except (Unauthorized, Forbidden) as error:
                raise unauthorized(error.message) from error
            return ENTRA
        raise unauthorized("The Authorization header names a scheme that is not supported.")
    if "sig" in parameters:
        sas = verify_sas(gateway, parameters, accounts, secure=request.secure)
        return Caller("sas", True, _completed(gateway, sas, storage=storage))
    raise unauthorized("The request has no Authorization header and no shared access signature.")


def _completed(gateway: Gateway, sas: Sas, *, storage: bool) -> Sas:
    """With what the stored access policy says that it names (Storage; Cosmos DB has none)."""
    if sas.policy is None:
        return sas
    found = find_policy(gateway, sas.table or "", sas.policy) if storage else None
    if found is None:
        raise unauthorized(f"There is no stored access policy '{sas.policy}'.")
    if found.expiry:
        check_times(found.start, found.expiry, gateway.wall_s())
    elif not sas.expires:
        raise unauthorized("Neither the signature nor its policy says when it expires.")
    return replace(sas, permissions=sas.permissions + found.permissions)


def _by_key(
    gateway: Gateway,
    request: Request,
    path: str,
    parameters: Mapping[str, str],
    scheme: str,
    rest: str,
) -> Caller:
    account, _, text = rest.strip().rpartition(":")
    headers = request.headers
    date = headers.get("x-ms-date") or headers.get("date")
    if date is None:
        raise unauthorized("The request has neither a Date nor an x-ms-date header.")
    try:
        signature = base64.b64decode(text, validate=True)
        gateway.keyring.check_date(date.encode("latin-1"), gateway.wall_s())
    except ValueError as error:
        raise unauthorized("The signature in the Authorization header is not base64.") from error
    except (Unauthorized, Forbidden) as error:
        raise unauthorized(error.message) from error
    lines = f"{date}\n"
    if scheme == "SharedKey":
        md5, kind = headers.get("content-md5", ""), headers.get("content-type", "")
        lines = f"{request.method}\n{md5}\n{kind}\n{date}\n"
    comp = parameters.get("comp")
    tail = "" if comp is None else f"?comp={comp}"
    for form in _forms(path):
        payload = f"{lines}/{account}{form}{tail}"
        may_write = gateway.keyring.signer_may_write(payload.encode(), signature)
        if may_write is not None:
            return FULL if may_write else READ_ONLY
    shown = f"{lines}/{account}{path}{tail}".replace("\n", "\\n")
    raise unauthorized(SIGNATURE_TEXT.format(shown))


def _forms(path: str) -> list[str]:
    forms = [path]
    if "'" in path:
        forms.append(path.replace("'", "%27"))
    if "%27" in path:
        forms.append(path.replace("%27", "'"))
    return forms


def unauthorized(message: str) -> BadInput:
    return refused("unauthorized", message=message)
