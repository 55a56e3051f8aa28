# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""JSON-RPC 2.0 over a Unix socket, one object a line. One connection, one request at a time."""
from __future__ import annotations

import collections
import json
import os
import socket
import time
from typing import Any, Deque, Dict, Optional

from .errors import ConnectionLost, PushbroomError, Unreachable, WaitTimeout, service_error

_LINE_MAX = 64 * 1024 * 1024
_READ = 65536


def _unreachable(path: str, error: OSError) -> Unreachable:
    if isinstance(error, PermissionError):
        return Unreachable("no service on %s: %s" % (path, error.strerror), "service.group",
                           "join the group of the socket: sudo adduser $USER pushbroom, then log in again")
    return Unreachable("no service on %s: %s" % (path, error.strerror or error), "service.unreachable",
                       "start the service: systemctl start pushbroom; or name its socket, or set PUSHBROOM_SOCKET")


class Connection:
    """Requests and notifications. Times are in seconds; a time limit of None waits without end."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._buffer = bytearray()
        self._number = 0
        self._notifications: Deque[Dict[str, Any]] = collections.deque()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end = time.monotonic() + timeout
        while True:
            try:
                self._socket.settimeout(max(end - time.monotonic(), 0.01))
                self._socket.connect(path)
                return
            except BlockingIOError as error:  # the queue of new connections is full
                if time.monotonic() >= end:
                    self._socket.close()
                    raise _unreachable(path, error) from error
                time.sleep(0.02)
            except OSError as error:
                self._socket.close()
                raise _unreachable(path, error) from error

    def close(self) -> None:
        self._socket.close()

    def has_ended(self) -> bool:
        """True if the service has closed this connection while it was idle."""
        self._socket.settimeout(0)
        try:
            return self._socket.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def call(self, method: str, params: Dict[str, Any], pass_fd: Optional[int] = None) -> Dict[str, Any]:
        """The result of a request. pass_fd: an open file that is sent when the service requests it."""
        self._number += 1
        request = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        end = time.monotonic() + self._timeout
        self._send(json.dumps(request).encode() + b"\n", end)
        while True:
            reply = self._read(end)
            if reply is None:
                raise WaitTimeout("no reply to %s within %g s" % (method, self._timeout))
            if reply.get("method") == "job.descriptor":
                self._pass(pass_fd)
            elif "method" in reply:
                self._notifications.append(reply)
            elif reply.get("id") == self._number:
                return self._result(reply)

    def notification(self, timeout: Optional[float]) -> Optional[Dict[str, Any]]:
        """The next notification, or None when the time is over."""
        if self._notifications:
            return self._notifications.popleft()
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            line = self._read(end)
            if line is None or "method" in line:
                return line

    @staticmethod
    def _result(reply: Dict[str, Any]) -> Dict[str, Any]:
        error = reply.get("error")
        if error is None:
            result: Dict[str, Any] = reply["result"]
            return result
        data = error.get("data") or {}
        raise service_error(error.get("message") or "the service gave no reason", data.get("code") or "",
                            data.get("hint") or "")

    def _lost(self, error: Optional[OSError]) -> ConnectionLost:
        why = (error.strerror or str(error)) if error else "end of the stream"
        return ConnectionLost("the service on %s closed the connection: %s" % (self._path, why),
                              "service.unreachable", "see the service's journal; connect again")

    def _send(self, data: bytes, end: float) -> None:
        try:
            self._socket.settimeout(max(end - time.monotonic(), 0.01))
            self._socket.sendall(data)
        except socket.timeout as error:
            raise WaitTimeout("the service takes no request") from error
        except OSError as error:
            raise self._lost(error) from error

    def _pass(self, fd: Optional[int]) -> None:
        if fd is None:
            raise PushbroomError("the service asked for an open file that this request does not have",
                                 "service.protocol", "use a client of the service's version")
        try:
            socket.send_fds(self._socket, [b"\n"], [fd])
        except OSError as error:
            raise self._lost(error) from error

    def _read(self, end: Optional[float]) -> Optional[Dict[str, Any]]:
        """The next line, or None when the time is over."""
        searched = 0
        while True:
            at = self._buffer.find(b"\n", searched)
            if at >= 0:
                line = bytes(self._buffer[:at])
                del self._buffer[:at + 1]
                return self._parse(line)
            searched = len(self._buffer)
            if searched > _LINE_MAX:
                raise PushbroomError("a reply of more than %d bytes" % _LINE_MAX, "service.protocol")
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return None
            try:
                self._socket.settimeout(left)
                more = self._socket.recv(_READ)
            except socket.timeout:
                return None
            except OSError as error:
                raise self._lost(error) from error
            if not more:
                raise self._lost(None)
            self._buffer += more

    @staticmethod
    def _parse(line: bytes) -> Dict[str, Any]:
        try:
            value = json.loads(line)
        except ValueError as error:
            raise PushbroomError("a reply that is not JSON", "service.protocol") from error
        if not isinstance(value, dict):
            raise PushbroomError("a reply that is no JSON object", "service.protocol")
        return value


def default_path() -> str:
    return os.environ.get("PUSHBROOM_SOCKET") or "/run/pushbroom/status.sock"
