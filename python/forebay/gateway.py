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
    """

    def __init__(self, socket: str | os.PathLike[str] = "/run/forebay/control") -> None:
        self.socket = os.fspath(socket)

    def status(self) -> dict[str, Any]:
        """Its state: the JSON document that ``forebay status --json`` prints.

        Raises
        ------
        GatewayError
            If no gateway answers on the socket.
        """
        status: dict[str, Any] = json.loads(_forebay.gateway_request(self.socket, "status"))
        return status

    def __repr__(self) -> str:
        return f"<forebay.Gateway {self.socket}>"
