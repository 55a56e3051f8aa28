# SPDX-FileCopyrightText: pushbroom authors
# SPDX-License-Identifier: Apache-2.0
"""The rules that the record of a trial must follow. check() returns what breaks them; check_checker() makes mistakes in a record that
follows them, one at a time, and returns those that check() does not find."""
import collections
import copy
import dataclasses

from watch import Change, Event, Publication

ACCEPTED, RUNNING, SUCCESSFUL, FAILED, DISMISSED = range(5)
NEW = -1
KINDS = ["job.accepted", "job.running", "job.successful", "job.failed", "job.dismissed"]
FINAL = (SUCCESSFUL, FAILED, DISMISSED)


@dataclasses.dataclass
class Scene:
    """A delivered file. place: "archive", "quarantine", or what else became of it; cancels and retries: requests that were made."""
    name: str
    scene: str
    good: bool
    cancels: int
    retries: int
    place: str
    products: dict  # {file: checksum} that are in place
    reference: dict  # those of a run without faults


@dataclasses.dataclass
class History:
    scenes: list
    changes: list  # changes of jobs in the store, in their order
    events: list  # events in the store, in their order
    seen: dict  # {node: events that it sent}
    publications: list
    moves: dict  # {scene: number of renames to its place}
    gone: list  # products that went
    left: list  # temporary files, claims, files in inboxes
    first: int  # number of the last event before
    gaps: dict = dataclasses.field(default_factory=dict)  # {number of an event: the last one that was left out after it}


def check_changes(scene, changes):
    """States of the jobs of a scene, and their epochs."""
    faults, jobs = [], collections.OrderedDict()
    for change in changes:
        jobs.setdefault(change.job, []).append(change)
    if len(jobs) != 1:
        faults.append(f"has {len(jobs)} jobs")
    for job, list_of in jobs.items():
        status, epoch, finals, retried = NEW, -1, 0, 0
        for change in list_of:
            if change.before != status:
                faults.append(f"job {job} was {change.before} after it was {status}")
            if change.epoch < epoch or (change.status == RUNNING and change.epoch <= epoch):
                faults.append(f"job {job} has epoch {change.epoch} after {epoch}")
            if status == RUNNING and change.status == RUNNING:
                faults.append(f"job {job} was started twice at the same time")
            if status in FINAL and change.status in (RUNNING, SUCCESSFUL, FAILED):
                faults.append(f"job {job} became {change.status} after its end")
            retried += status in FINAL and change.status == ACCEPTED
            finals += change.status in FINAL and status not in FINAL
            status, epoch = change.status, max(epoch, change.epoch)
        if status not in FINAL:
            faults.append(f"job {job} has not ended")
        if retried > scene.retries or finals != retried + 1:
            faults.append(f"job {job} ended {finals} times and was retried {retried} of {scene.retries} times")
    return faults


def check_end(scene, status):
    """The last state of its job, where its file is, and its products."""
    faults = []
    allowed = [SUCCESSFUL if scene.good else FAILED] + [DISMISSED] * (scene.cancels > 0)
    if status not in allowed:
        faults.append(f"ended as {status}, allowed is {allowed}")
    place = "archive" if status == SUCCESSFUL else "quarantine"
    if scene.place != place:
        faults.append(f"its file is in {scene.place}, not in {place}")
    wanted = scene.reference if status == SUCCESSFUL else {}
    if scene.products != wanted:
        names = sorted(n for n in scene.products.keys() | wanted.keys() if scene.products.get(n) != wanted.get(n))
        faults.append(f"products differ from those of a run without faults: {names}")
    return faults


def check_publications(scene, changes, publications, moves):
    faults, last = [], changes[-1] if changes else None
    wanted = 1 if last and last.status == SUCCESSFUL else 0
    if len(publications) != wanted or moves > wanted:
        faults.append(f"published {max(len(publications), moves)} times, not {wanted}")
    for publication in publications:
        started = {change.epoch for change in changes if change.status == RUNNING and change.job == publication.job}
        if publication.epoch not in started:
            faults.append(f"published by job {publication.job}, epoch {publication.epoch}, which did not run")
        if not publication.complete:
            faults.append("was seen before it was complete")
    return faults


def check_events(history):
    """Numbers without gaps, one event of each change of state, the same to every client."""
    faults = []
    numbers = [event.seq for event in history.events]
    wanted, number = [], history.first
    for _ in numbers:
        while number in history.gaps:
            number = history.gaps[number]
        number += 1
        wanted.append(number)
    if numbers != wanted:
        at = next(i for i, (a, b) in enumerate(zip(numbers, wanted)) if a != b)
        faults.append(f"event {wanted[at]} is missing or there twice, before {numbers[at]}")
    told = collections.Counter((e.job, e.kind) for e in history.events if e.kind in KINDS)
    made = collections.Counter((c.job, KINDS[c.status]) for c in history.changes if c.before != c.status)
    for key in sorted(told.keys() | made.keys()):
        if told[key] != made[key]:
            faults.append(f"{key[1]} of job {key[0]}: {told[key]} events of {made[key]} changes")
    final = {}
    for event in history.events:
        if event.kind in KINDS:
            final[event.job] = event.kind
    last = {change.job: KINDS[change.status] for change in history.changes}
    faults += [f"the last event of job {job} is {kind}, and not {last.get(job)}" for job, kind in final.items() if kind != last.get(job)]
    products = collections.Counter(e.job for e in history.events if e.kind == "product.published")
    for scene, job in ((s, c.job) for s in history.scenes for c in history.changes if c.name == s.name and c.status == SUCCESSFUL):
        if products[job] != len(scene.reference):
            faults.append(f"{scene.name}: {products[job]} products were reported, not {len(scene.reference)}")
    for node, seen in history.seen.items():
        if seen != history.events:
            missing = [e.seq for e in history.events if e not in seen]
            more = [f"{e.seq} {e.kind}" for e in seen if e not in history.events]
            faults.append(f"node {node} sent {len(seen)} events, not {len(history.events)} in their order; missing are {missing[:5]}, "
                          f"others are {more[:5]}")
    return faults


def check(history):
    faults = check_events(history) + [f"left behind: {path}" for path in history.left] + \
        [f"products were removed: {place}" for place in history.gone]
    changes, publications = collections.defaultdict(list), collections.defaultdict(list)
    for change in history.changes:
        changes[change.name].append(change)
    for publication in history.publications:
        publications[publication.scene].append(publication)
    for scene in history.scenes:
        own = changes.pop(scene.name, [])
        found = check_changes(scene, own)
        if own:
            found += check_end(scene, own[-1].status)
        found += check_publications(scene, own, publications.pop(scene.scene, []), history.moves.get(scene.scene, 0))
        faults += [f"{scene.name}: {fault}" for fault in found]
    faults += [f"a job of {name}, which was not delivered" for name in changes]
    return faults + [f"products of {scene}, which was not delivered" for scene in publications]


# --- mistakes that the checker must find -----------------------------------------------------------------------------------------------


def scene_of(history, status):
    """A scene whose job ended so, and its changes."""
    last = {change.name: change.status for change in history.changes}
    scene = next(s for s in history.scenes if last[s.name] == status)
    return scene, [change for change in history.changes if change.name == scene.name]


def lose_file(h):
    scene_of(h, SUCCESSFUL)[0].place = "no place"


def put_file_twice(h):
    scene_of(h, SUCCESSFUL)[0].place = "archive, quarantine"


def archive_failed(h):
    scene_of(h, FAILED)[0].place = "archive"


def fail_good(h):
    scene, own = scene_of(h, SUCCESSFUL)
    own[-1].status, scene.place, scene.products = FAILED, "quarantine", {}


def lose_job(h):
    scene, _ = scene_of(h, SUCCESSFUL)
    h.changes = [change for change in h.changes if change.name != scene.name]


def make_second_job(h):
    _, own = scene_of(h, SUCCESSFUL)
    h.changes += [dataclasses.replace(change, job="other") for change in own]


def leave_running(h):
    _, own = scene_of(h, SUCCESSFUL)
    h.changes.remove(own[-1])


def run_after_end(h):
    _, own = scene_of(h, SUCCESSFUL)
    h.changes.append(dataclasses.replace(own[-1], before=SUCCESSFUL, status=RUNNING, epoch=own[-1].epoch + 1))
    h.changes.append(dataclasses.replace(own[-1], before=RUNNING, status=SUCCESSFUL, epoch=own[-1].epoch + 1))


def keep_epoch(h):
    _, own = scene_of(h, SUCCESSFUL)
    for change in own:
        change.epoch = 1
    again = own[1]
    h.changes[h.changes.index(again) + 1:h.changes.index(again) + 1] = [
        dataclasses.replace(again, before=RUNNING, status=ACCEPTED), dataclasses.replace(again)]


def start_twice(h):
    _, own = scene_of(h, SUCCESSFUL)
    at = h.changes.index(next(change for change in own if change.status == RUNNING))
    h.changes.insert(at + 1, dataclasses.replace(h.changes[at], before=RUNNING, epoch=h.changes[at].epoch + 1))


def end_twice(h):
    _, own = scene_of(h, SUCCESSFUL)
    h.changes.append(dataclasses.replace(own[-1], before=SUCCESSFUL, status=DISMISSED))
    h.changes.append(dataclasses.replace(own[-1], before=DISMISSED, status=ACCEPTED))
    h.changes.append(dataclasses.replace(own[-1], before=ACCEPTED, status=SUCCESSFUL))


def publish_twice(h):
    p = h.publications[0]
    h.publications.append(Publication(p.scene, p.inode + 1, p.job, p.epoch, True))


def publish_twice_unseen(h):
    h.moves[h.publications[0].scene] = 2


def publish_late(h):
    h.publications[0].epoch = 999


def publish_failed(h):
    scene, own = scene_of(h, FAILED)
    h.publications.append(Publication(scene.scene, 1, own[0].job, own[-1].epoch, True))


def publish_half(h):
    h.publications[0].complete = False


def publish_nothing(h):
    del h.publications[0]


def change_product(h):
    products = scene_of(h, SUCCESSFUL)[0].products
    products[next(iter(products))] = "other"


def lose_product(h):
    products = scene_of(h, SUCCESSFUL)[0].products
    del products[next(iter(products))]


def remove_products(h):
    h.gone.append("a scene")


def lose_event(h):
    del h.events[len(h.events) // 2]
    for seen in h.seen.values():
        del seen[len(seen) // 2]


def tell_twice(h):
    at = next(i for i, event in enumerate(h.events) if event.kind == KINDS[SUCCESSFUL])
    for events in (h.events, *h.seen.values()):
        events[at + 1:] = [dataclasses.replace(event, seq=event.seq + 1) for event in events[at:]]


def tell_product_twice(h):
    for events in (h.events, *h.seen.values()):
        events.append(Event(events[-1].seq + 1, "product.published", next(e.job for e in events if e.kind == "product.published")))


def miss_event_at_node(h):
    del next(iter(h.seen.values()))[0]


def repeat_event_at_node(h):
    seen = next(iter(h.seen.values()))
    seen.append(seen[-1])


def reorder_events_at_node(h):
    seen = next(iter(h.seen.values()))
    seen[0], seen[1] = seen[1], seen[0]


def leave_file(h):
    h.left.append("a temporary directory")


def invent_job(h):
    h.changes.append(Change(0, "job", "other.tif", NEW, ACCEPTED, 0, "a"))


MISTAKES = [lose_file, put_file_twice, archive_failed, fail_good, lose_job, make_second_job, leave_running, run_after_end, keep_epoch,
            start_twice, end_twice, publish_twice, publish_twice_unseen, publish_late, publish_failed, publish_half, publish_nothing,
            change_product, lose_product, remove_products, lose_event, tell_twice, tell_product_twice, miss_event_at_node,
            repeat_event_at_node, reorder_events_at_node, leave_file, invent_job]


def check_checker(history):
    """history: one without faults, with a successful and a failed job."""
    missed = []
    for mistake in MISTAKES:
        wrong = copy.deepcopy(history)
        mistake(wrong)
        if not check(wrong):
            missed.append(f"the checker does not find: {mistake.__name__}")
    return missed
