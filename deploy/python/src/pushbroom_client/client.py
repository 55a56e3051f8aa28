# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The client of the service. One thread an object."""
from __future__ import annotations

import datetime
import os
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Type, Union

from .connection import Connection, default_path
from .errors import ConnectionLost, EventsLost, JobFailed, Unreachable, WaitTimeout
from .types import Change, Job, JobStatus

_Status = Union[str, JobStatus]
_RETRY_S = 0.2


class Client:
    """A connection to the service, opened by the first request.

    socket: path; default: $PUSHBROOM_SOCKET, else /run/pushbroom/status.sock.
    timeout: seconds that connecting and each request may take.
    reconnect: seconds for which queries, wait() and watch() try to connect again after the service
    ended the connection, for example because it restarts; 0 = never. Requests that change something
    are never repeated: they raise ConnectionLost."""

    def __init__(self, socket: Optional[Union[str, "os.PathLike[str]"]] = None, timeout: float = 30.0,
                 reconnect: float = 60.0) -> None:
        self.path = os.fspath(socket) if socket is not None else default_path()
        self.timeout = timeout
        self.reconnect = reconnect
        self._connection: Optional[Connection] = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def close(self) -> None:
        """Ends the connection; the next request opens another one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- jobs ---

    def submit(self, path: Union[str, "os.PathLike[str]"], pipeline: Optional[str] = None,
               priority: int = 0) -> Job:
        """Gives a file or a folder, which stays in its place, to the service.

        pipeline: its name; default: the first one that fits the name of the input. priority: -100 to
        100, jobs with the highest number run first. The opened input is passed to the service, which
        thereby knows that the caller may read it."""
        full = os.path.realpath(os.fspath(path))
        params: Dict[str, Any] = {"input": full, "descriptor": True}
        if pipeline is not None:
            params["pipeline"] = pipeline
        if priority != 0:
            params["priority"] = priority
        try:
            fd: Optional[int] = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:  # the service names the reason
            fd, params["descriptor"] = None, False
        try:
            return Job.from_json(self._change("job.submit", params, fd))
        finally:
            if fd is not None:
                os.close(fd)

    def job(self, id: str) -> Job:
        """The job with that id, or with an id that ends with it."""
        return Job.from_json(self._query("job.get", {"id": id}))

    def jobs(self, status: Optional[Union[_Status, Iterable[_Status]]] = None, pipeline: Optional[str] = None,
             since: Optional[datetime.datetime] = None, limit: int = 100,
             before: Optional[Union[str, Job]] = None, brief: bool = False) -> List[Job]:
        """Jobs, newest first: at most limit (1 to 1000) of those in the given states, of the pipeline,
        changed since that time, older than the job `before`. brief: without reports."""
        params: Dict[str, Any] = {"limit": limit}
        if before is not None:
            params["before"] = _id(before)
        if brief:
            params["fields"] = "brief"
        if status is not None:
            words = [status] if isinstance(status, str) else list(status)
            params["status"] = [str(JobStatus(word)) for word in words]
        if pipeline is not None:
            params["pipeline"] = pipeline
        if since is not None:
            params["since_ms"] = int(since.timestamp() * 1000)
        return [Job.from_json(raw) for raw in self._query("job.list", params)["jobs"]]

    def cancel(self, job: Union[str, Job]) -> Job:
        """Dismisses a job that waits, or ends the run of one that runs."""
        return Job.from_json(self._change("job.cancel", {"id": _id(job)}))

    def retry(self, job: Union[str, Job]) -> Job:
        """A failed or dismissed job waits to run again."""
        return Job.from_json(self._change("job.retry", {"id": _id(job)}))

    def again(self, job: Union[str, Job], priority: Optional[int] = None, dry_run: bool = False) -> Job:
        """Makes the products of a finished job again from its archived input: the new job.

        priority: -100 to 100; default: that of the service for such jobs, below new deliveries.
        dry_run: makes nothing and returns the job whose products would be made again."""
        params: Dict[str, Any] = {"id": _id(job)}
        if priority is not None:
            params["priority"] = priority
        if dry_run:
            params["dry_run"] = True
        return Job.from_json(self._change("job.again", params))

    def drop(self, job: Union[str, Job]) -> Job:
        """Removes the quarantined input of a failed job, and the job."""
        return Job.from_json(self._change("job.drop", {"id": _id(job)}))

    def wait(self, job: Union[str, Job], timeout: Optional[float] = None, check: bool = True,
             on_progress: Optional[Callable[[Job], None]] = None) -> Job:
        """Waits until the job is finished, over restarts of the service; its last state.

        timeout: seconds, else WaitTimeout. check: a job that did not succeed raises JobFailed.
        on_progress is called with each state that the service reports, at most 5 times a second."""
        end = None if timeout is None else time.monotonic() + timeout
        id = _id(job)
        for state in self._states(id, end):
            if on_progress is not None:
                on_progress(state)
            if state.is_finished:
                if check and state.status != JobStatus.SUCCESSFUL:
                    raise JobFailed(state)
                return state
        raise WaitTimeout("job %s is not finished after %g s" % (id, timeout or 0))

    def watch(self, since: Optional[int] = None, job: Optional[Union[str, Job]] = None,
              timeout: Optional[float] = None) -> Iterator[Change]:
        """Every change of every job (or of one), in order and without gaps, over restarts.

        since: the seq of the last change that the caller has seen; default: changes from now on. A
        number whose successors are no longer kept raises EventsLost. timeout: seconds without a change
        after which the iteration ends; default: never. Each iterator has its own connection."""
        first = self._watch_from(since, job)
        return self._changes(first, job, timeout)

    # --- the service ---

    def info(self) -> Dict[str, Any]:
        """Version, device, configuration, counts and troubles of the service."""
        return self._query("service.info", {})

    def metrics(self) -> str:
        """The metrics in the text format of Prometheus."""
        text: str = self._query("service.metrics", {})["text"]
        return text

    def call(self, method: str, **params: Any) -> Dict[str, Any]:
        """Any method of the socket; it is not repeated when the connection is lost."""
        return self._change(method, params)

    # --- inside ---

    def _connected(self) -> Connection:
        if self._connection is not None and self._connection.has_ended():
            self.close()  # an idle connection; nothing was sent yet
        if self._connection is None:
            self._connection = Connection(self.path, self.timeout)
        return self._connection

    def _change(self, method: str, params: Dict[str, Any], fd: Optional[int] = None) -> Dict[str, Any]:
        try:
            return self._connected().call(method, params, fd)
        except (ConnectionLost, WaitTimeout):
            self.close()
            raise

    def _again(self, until: float) -> bool:
        if time.monotonic() >= until:
            return False
        time.sleep(_RETRY_S)
        return True

    def _query(self, method: str, params: Dict[str, Any]) -> Dict[str, Any]:
        until: Optional[float] = None
        while True:
            try:
                return self._connected().call(method, params)
            except WaitTimeout:
                self.close()
                raise
            except (ConnectionLost, Unreachable) as error:
                self.close()
                if isinstance(error, Unreachable) and until is None:
                    raise  # it was not there to begin with
                until = time.monotonic() + self.reconnect if until is None else until
                if not self._again(until):
                    raise

    def _open_watch(self, params: Dict[str, Any], until: Optional[float]) -> "tuple[Connection, Dict[str, Any]]":
        """A connection of its own that watches, and the reply; until: how long it may be missing."""
        while True:
            try:
                connection = Connection(self.path, self.timeout)
                try:
                    return connection, connection.call("job.watch", params)
                except BaseException:
                    connection.close()
                    raise
            except (ConnectionLost, Unreachable):
                if until is None or not self._again(until):
                    raise

    def _states(self, id: str, end: Optional[float]) -> Iterator[Job]:
        """The states of a job until the time `end`."""
        until: Optional[float] = None
        while True:
            connection, reply = self._open_watch({"id": id}, until)
            try:
                yield Job.from_json(reply["jobs"][0])
                while True:
                    left = None if end is None else end - time.monotonic()
                    line = connection.notification(left) if left is None or left > 0 else None
                    if line is None:
                        return
                    if line["method"] == "job.event":
                        yield Job.from_json(line["params"])
            except ConnectionLost:
                until = time.monotonic() + self.reconnect
                if not self._again(until):
                    raise
            finally:
                connection.close()

    def _watch_from(self, since: Optional[int], job: Optional[Union[str, Job]]) -> "tuple[Connection, int]":
        params: Dict[str, Any] = {} if job is None else {"id": _id(job)}
        if since is None:
            connection, reply = self._open_watch(params, None)
            connection.close()
            since = int(reply["seq"] or 0)
        return self._resume(since, params, None), since

    def _resume(self, since: int, params: Dict[str, Any], until: Optional[float]) -> Connection:
        connection, reply = self._open_watch(dict(params, since=since), until)
        if reply.get("gone"):
            connection.close()
            raise EventsLost(since, reply.get("seq"))
        return connection

    def _changes(self, first: "tuple[Connection, int]", job: Optional[Union[str, Job]],
                 timeout: Optional[float]) -> Iterator[Change]:
        connection, seq = first
        params: Dict[str, Any] = {} if job is None else {"id": _id(job)}
        try:
            while True:
                try:
                    line = self._next_change(connection, timeout)
                except ConnectionLost:
                    connection.close()
                    until = time.monotonic() + self.reconnect
                    if not self._again(until):
                        raise
                    connection = self._resume(seq, params, until)
                    continue
                if line is None:
                    return
                change = Change.from_json(line["params"])
                seq = change.seq
                yield change
        finally:
            connection.close()

    @staticmethod
    def _next_change(connection: Connection, timeout: Optional[float]) -> Optional[Dict[str, Any]]:
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            line = connection.notification(None if end is None else max(end - time.monotonic(), 0))
            if line is None or line["method"] == "job.change":
                return line


def _id(job: Union[str, Job]) -> str:
    return job.id if isinstance(job, Job) else job
