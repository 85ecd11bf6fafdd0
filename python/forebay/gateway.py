"""A running gateway, over its control socket."""

from __future__ import annotations

import json
import os
from typing import Any

from forebay import _forebay

__all__ = ["Gateway"]


class Gateway:
    """A running gateway.

    Parameters
    ----------
    socket : str or os.PathLike
        Its control socket, the key ``control.socket`` of its configuration file.

    Raises
    ------
    GatewayError
        By each method, if no gateway answers on the socket.
    """

    def __init__(self, socket: str | os.PathLike[str] = "/run/forebay/control.sock") -> None:
        self.socket = os.fspath(socket)

    def status(self) -> dict[str, Any]:
        """Its state: the JSON document that ``forebay status --json`` prints."""
        return self._ask("status")

    def sas(self) -> dict[str, Any]:
        """The security associations: the JSON document that ``forebay show sas --json`` prints."""
        return self._ask("sas")

    def policies(self) -> dict[str, Any]:
        """The policies: the JSON document that ``forebay show policies --json`` prints."""
        return self._ask("policies")

    def processors(self) -> dict[str, Any]:
        """The processors: the JSON document that ``forebay show processors --json`` prints."""
        return self._ask("processors")

    def drops(self) -> dict[str, Any]:
        """Dropped packets by reason: the JSON document that ``forebay show drops --json`` prints."""
        return self._ask("drops")

    def _ask(self, request: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(_forebay.gateway_request(self.socket, request))
        return answer

    def __repr__(self) -> str:
        return f"<forebay.Gateway {self.socket}>"
