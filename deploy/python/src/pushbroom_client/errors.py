# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Errors with a message, the code of pushbroom-errors(7), and a hint that names the remedy."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .types import Job


class PushbroomError(Exception):
    """Base of all errors of this package."""

    def __init__(self, message: str, code: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        text = self.message
        if self.code:
            text += " [%s]" % self.code
        if self.hint:
            text += "; to do: %s" % self.hint
        return text


class Unreachable(PushbroomError):
    """No service listens on the socket, or the user may not use it."""


class ConnectionLost(PushbroomError):
    """The connection ended during a request. The service may have made the change."""


class WaitTimeout(PushbroomError, TimeoutError):
    """The time limit of the call is over."""


class EventsLost(PushbroomError):
    """Changes after the given number are no longer kept, or never existed.

    seq is the number from which a new watch() can continue; jobs() shows the present state."""

    def __init__(self, since: int, seq: Optional[int]) -> None:
        super().__init__("the changes after number %d are no longer kept" % since, "",
                         "call jobs(), then watch(since=%s)" % seq)
        self.since = since
        self.seq = seq


class ServiceError(PushbroomError):
    """The service refused a request."""


class InputError(ServiceError):
    """The submitted input cannot be used: code input.*."""


class UnknownJob(ServiceError):
    """No job has that id: code job.unknown."""


class WrongState(ServiceError):
    """The state of the job does not allow the change: code job.state."""


class Denied(ServiceError):
    """The user may not change this job: code service.denied."""


class ServiceBusy(ServiceError):
    """A limit of the service is reached: code service.busy. Try again later."""


class JobError(PushbroomError):
    """The error of a job, as Job.error holds it."""


class JobFailed(PushbroomError):
    """wait() found that the job failed or was dismissed; job is its last state."""

    def __init__(self, job: "Job") -> None:
        error = job.error
        super().__init__("job %s (%s) %s: %s" % (job.id, job.name, job.status,
                                                 error.message if error else "no reason was given"),
                         error.code if error else "", error.hint if error else "")
        self.job = job


_CLASSES = {"job.unknown": UnknownJob, "job.state": WrongState, "service.denied": Denied,
            "service.busy": ServiceBusy}


def service_error(message: str, code: str, hint: str) -> ServiceError:
    """The exception for an error reply of the service."""
    if code.startswith("input."):
        return InputError(message, code, hint)
    return _CLASSES.get(code, ServiceError)(message, code, hint)
