# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs, products and changes as the service describes them."""
from __future__ import annotations

import dataclasses
import datetime
import enum
import os
from typing import Any, Dict, List, Optional

from .errors import JobError


class JobStatus(str, enum.Enum):
    """States of a job, by the words of OGC API - Processes."""

    ACCEPTED = "accepted"
    RUNNING = "running"
    SUCCESSFUL = "successful"
    FAILED = "failed"
    DISMISSED = "dismissed"

    def __str__(self) -> str:
        return self.value


_FINISHED = (JobStatus.SUCCESSFUL, JobStatus.FAILED, JobStatus.DISMISSED)


def _time(text: Optional[str]) -> Optional[datetime.datetime]:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


@dataclasses.dataclass(frozen=True)
class Product:
    """One file that a job published."""

    type: str
    name: str
    path: str
    bytes: int
    checksum: Optional[str]
    raw: Dict[str, Any] = dataclasses.field(repr=False, compare=False)


@dataclasses.dataclass(frozen=True)
class Job:
    """A job at one moment. raw holds every member that the service sent."""

    id: str
    name: str
    status: JobStatus
    pipeline: str
    input: Optional[str]
    priority: int
    progress: int
    directory: Optional[str]
    products: List[Product]
    error: Optional[JobError]
    created: Optional[datetime.datetime]
    started: Optional[datetime.datetime]
    finished: Optional[datetime.datetime]
    report: Optional[Dict[str, Any]] = dataclasses.field(repr=False)
    raw: Dict[str, Any] = dataclasses.field(repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        return self.status in _FINISHED

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> "Job":
        directory = raw.get("directory")
        error = raw.get("error")
        return cls(
            id=raw["id"],
            name=raw["name"],
            status=JobStatus(raw["status"]),
            pipeline=raw.get("pipeline") or "",
            input=raw.get("input"),
            priority=raw.get("priority") or 0,
            progress=raw.get("progress") or 0,
            directory=directory,
            products=[_product(directory, p) for p in raw.get("products") or []],
            error=JobError(error["message"], error["code"], error.get("hint") or "") if error else None,
            created=_time(raw.get("created")),
            started=_time(raw.get("started")),
            finished=_time(raw.get("finished")),
            report=raw.get("report"),
            raw=raw,
        )


def _product(directory: Optional[str], raw: Dict[str, Any]) -> Product:
    return Product(type=raw.get("type") or "", name=raw.get("name") or "",
                   path=os.path.join(directory or "", raw.get("path") or ""),
                   bytes=raw.get("bytes") or 0, checksum=raw.get("checksum"), raw=raw)


@dataclasses.dataclass(frozen=True)
class Change:
    """A change of a job: event is "job.successful", "product.published", ...

    seq numbers all changes and rises over restarts: watch(since=change.seq) continues after it."""

    seq: int
    event: str
    time: Optional[datetime.datetime]
    job: Job
    product: Optional[Product]
    raw: Dict[str, Any] = dataclasses.field(repr=False, compare=False)

    @classmethod
    def from_json(cls, raw: Dict[str, Any]) -> "Change":
        data = raw["data"]
        job = Job.from_json(data["job"])
        product = data.get("product")
        return cls(seq=raw["seq"], event=raw["event"], time=_time(raw.get("time")), job=job,
                   product=_product(job.directory, product) if product else None, raw=raw)
