# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Client of the pushbroom service over its Unix socket.

    from pushbroom_client import Client

    with Client() as pushbroom:
        job = pushbroom.submit("/srv/scenes/scene.tif", pipeline="ndvi")
        for product in pushbroom.wait(job).products:
            print(product.path)
"""
from .client import Client
from .errors import (
    ConnectionLost,
    Denied,
    EventsLost,
    InputError,
    JobError,
    JobFailed,
    PushbroomError,
    ServiceBusy,
    ServiceError,
    Unreachable,
    UnknownJob,
    WaitTimeout,
    WrongState,
)
from .types import Change, Job, JobStatus, Product

__all__ = [
    "Change",
    "Client",
    "ConnectionLost",
    "Denied",
    "EventsLost",
    "InputError",
    "Job",
    "JobError",
    "JobFailed",
    "JobStatus",
    "Product",
    "PushbroomError",
    "ServiceBusy",
    "ServiceError",
    "Unreachable",
    "UnknownJob",
    "WaitTimeout",
    "WrongState",
]
