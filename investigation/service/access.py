"""Who may ask: callers by API key, requests by origin, and no secret in what leaves the process."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from fastapi import HTTPException, Request
from fastapi.security import HTTPBearer

from two_workers import BadInput

BEARER = HTTPBearer(auto_error=False, description="An API key. Not needed on loopback.")
UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PWD", re.IGNORECASE)
SHORTEST_SECRET = 6  # replacing something shorter would eat ordinary words


@dataclass(frozen=True)
class Caller:
    """Who asks. `tenant` None is an operator on loopback, who sees every tenant's runs."""

    tenant: str | None


class Access:
    """Tells callers apart. Holds digests of keys, so that comparing them leaks no timing."""

    def __init__(self, tenants_by_key: Mapping[str, str]) -> None:
        self._tenants = {_digest(key): tenant for key, tenant in tenants_by_key.items()}

    async def caller(self, request: Request) -> Caller:
        """The caller of a request. Raises 401 without a valid key, if keys are given out."""
        if not self._tenants:
            return Caller(tenant=None)
        credentials = await BEARER(request)
        tenant = self._tenants.get(_digest(credentials.credentials)) if credentials else None
        if tenant is None:
            raise HTTPException(
                401,
                "an API key is needed: send `Authorization: Bearer KEY`",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return Caller(tenant=tenant)


def refuse_other_sites(request: Request) -> None:
    """403 for a change that another web site's page asks for in this person's browser.

    On loopback there is no key that such a page would lack. Browsers send `Origin` with every
    cross-site request that changes something; programs send none.
    """
    origin = request.headers.get("origin")
    if request.method in UNSAFE and origin not in (
        None,
        f"{request.url.scheme}://{_host(request)}",
    ):
        raise HTTPException(403, "requests from other web sites are refused")


def _host(request: Request) -> str:
    return request.headers.get("host", "")


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_exposure(host: str, *, has_keys: bool, demo: bool) -> None:
    """Raises `BadInput` when `host` would let strangers in."""
    if is_loopback(host):
        return
    if demo:
        raise BadInput(
            f"--demo lets callers kill processes, so it is served on loopback only, not on {host}"
        )
    if not has_keys:
        raise BadInput(
            f"--host {host} can be reached from other machines: set SERVICE_API_KEYS "
            "(`tenant=key,...`), or serve on 127.0.0.1"
        )


# Secrets.


def secrets_in(env: Mapping[str, str]) -> list[str]:
    """The values in `env` that look like secrets by their name, and the passwords of URLs."""
    found = {value for name, value in env.items() if SECRET_NAME.search(name)}
    for value in env.values():
        password = _password(value)
        found |= {password, unquote(password)} if password else set()
    found |= {part.partition("=")[2] for part in env.get("SERVICE_API_KEYS", "").split(",")}
    return sorted((s for s in found if len(s) >= SHORTEST_SECRET), key=len, reverse=True)


def _password(value: str) -> str | None:
    if "://" not in value:
        return None
    try:
        return urlsplit(value).password
    except ValueError:
        return None


class Redactor(logging.Filter):
    """Replaces known secrets in text, and in every log record that passes."""

    def __init__(self, secrets: Iterable[str]) -> None:
        super().__init__()
        self._secrets = tuple(secrets)

    def clean(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "[secret]")
        return text

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = self.clean(record.getMessage()), ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = self.clean(record.exc_text)
        return True
