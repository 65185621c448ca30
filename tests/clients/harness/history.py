"""What the members of a group and the producers said, and whether it can be so on a correct broker.

A member is any client in any language that prints, with the wall clock in microseconds:

    assigned US GENERATION P,P,P     all it owns from now on (GENERATION is -1 where the client does not tell; `-` is none)
    revoked US P,P                   it stopped reading these, its commits for them are done
    lost US P,P                      it found that it no longer owned these
    read US PARTITION FIRST ID ID... records at FIRST, FIRST+1, ...
    committed US P:OFFSET P:OFFSET   the broker acknowledged these
    refused US ...                   the broker refused a commit
    left US                          it closed cleanly
    error US TEXT

A producer prints `acked PARTITION OFFSET ID` and, at its end, `done FAILURES`.
"""

import bisect
import collections
import threading
import time

from harness.report import require


class Ownership:
    """One stretch of time in which a member owned a partition."""

    __slots__ = ("member", "partition", "generation", "since", "until", "how", "next_offset")

    def __init__(self, member, partition, generation, since):
        self.member = member
        self.partition = partition
        self.generation = generation
        self.since = since
        self.until = None
        self.how = None
        self.next_offset = None

    def __str__(self):
        until = "now" if self.until is None else f"{(self.until - self.since) / 1e6:.2f} s later ({self.how})"
        return f"{self.member} owned partition {self.partition} from {self.since} until {until}, generation {self.generation}"


class MemberLog:
    """The lines of one member, understood as they come."""

    def __init__(self, name):
        self.name = name
        self.owned = {}
        self.past = []
        self.assignments = []
        self.generation = -1
        self.reads = []
        self.read_count = 0
        self.read_ends = {}
        self.dead = False
        self.commits = []
        self.refusals = []
        self.errors = []
        self.left = False
        self._lock = threading.Lock()

    def line(self, line):
        words = line.split(" ")
        handler = getattr(self, f"_on_{words[0]}", None)
        if handler is None:
            self.errors.append(line)
            return
        with self._lock:
            handler(int(words[1]), words[2:])

    def _on_assigned(self, at, words):
        self.generation = int(words[0])
        now = _numbers(words[1])
        self.assignments.append((at, self.generation, now))
        for partition in set(self.owned) - now:
            self._end(partition, at, "revoked")
        for partition in now - set(self.owned):
            self.owned[partition] = Ownership(self.name, partition, self.generation, at)

    def _on_revoked(self, at, words):
        for partition in _numbers(words[0]) & set(self.owned):
            self._end(partition, at, "revoked")

    def _on_lost(self, at, words):
        for partition in _numbers(words[0]) & set(self.owned):
            self._end(partition, at, "lost")

    def _on_read(self, at, words):
        partition, first, ids = int(words[0]), int(words[1]), [int(word) for word in words[2:]]
        self.reads.append((at, partition, first, ids, self.owned.get(partition)))
        self.read_count += len(ids)
        self.read_ends[partition] = max(first + len(ids), self.read_ends.get(partition, 0))

    def _on_committed(self, at, words):
        for word in words:
            partition, offset = word.split(":")
            self.commits.append((at, int(partition), int(offset)))

    def _on_refused(self, at, words):
        self.refusals.append((at, " ".join(words)))

    def _on_left(self, at, _words):
        self.left = True
        self._end_all(at, "left")

    def _on_error(self, _at, words):
        self.errors.append(" ".join(words))

    def died(self):
        self.dead = True
        with self._lock:
            self._end_all(int(time.time() * 1e6), "died")

    def _end_all(self, at, how):
        for partition in list(self.owned):
            self._end(partition, at, how)

    def _end(self, partition, at, how):
        ownership = self.owned.pop(partition)
        ownership.until = at
        ownership.how = how
        self.past.append(ownership)

    def partitions(self):
        with self._lock:
            return set(self.owned)

    def ownerships(self):
        with self._lock:
            return self.past + list(self.owned.values())


class FeedLog:
    """The lines of one producer."""

    def __init__(self, name):
        self.name = name
        self.acked = []
        self.errors = []
        self.done = False

    def line(self, line):
        words = line.split(" ")
        if words[0] == "acked":
            self.acked.append((int(words[1]), int(words[2]), int(words[3])))
        elif words[0] == "done":
            self.done = True
        else:
            self.errors.append(line)


class History:
    """All members of one group over one topic, and all that was produced to the topic."""

    def __init__(self):
        self.members = []
        self.feeds = []

    def member(self, name):
        log = MemberLog(name)
        self.members.append(log)
        return log

    def feed(self, name):
        log = FeedLog(name)
        self.feeds.append(log)
        return log

    def read_count(self):
        return sum(member.read_count for member in self.members)

    def committed(self):
        """The highest acknowledged commit of each partition."""
        highest = {}
        for member in self.members:
            for _, partition, offset in list(member.commits):
                highest[partition] = max(offset, highest.get(partition, 0))
        return highest

    def ends(self):
        """For each partition, one past the last acknowledged record."""
        ends = {}
        for feed in self.feeds:
            for partition, offset, _ in list(feed.acked):
                ends[partition] = max(offset + 1, ends.get(partition, 0))
        return ends

    def behind(self):
        """The partitions of which not all is read and committed, with what is known of them. Whether the last commit of
        a member that was killed came through, only the broker knows."""
        committed = self.committed()
        behind = {}
        for partition, end in self.ends().items():
            read, last = max(((member.read_ends.get(partition, 0), member) for member in self.members), key=lambda pair: pair[0])
            if read < end or (committed.get(partition, 0) < end and not last.dead):
                behind[partition] = f"ends at {end}, read to {read}, committed {committed.get(partition, 0)}"
        return behind

    # The facts. Each raises Failure with what was seen.

    def every_send_was_acknowledged(self, count):
        errors = [error for feed in self.feeds for error in feed.errors]
        require(not errors, f"{len(errors)} sends failed, the first: {errors[:3]}")
        ids = [id for feed in self.feeds for _, _, id in feed.acked]
        require(len(ids) == count, f"{len(ids)} of {count} sends were acknowledged")
        require(len(set(ids)) == count, "a send was acknowledged twice")

    def the_log_holds_each_record_once_and_in_order(self):
        """Retries across a killed broker are stored once, at the offsets acknowledged, without holes, and no record
        overtakes an earlier one of its producer."""
        places = {}
        for feed in self.feeds:
            last = {}
            for partition, offset, id in sorted(feed.acked, key=lambda ack: (ack[0], ack[1])):
                require((partition, offset) not in places, f"{partition}@{offset} was acknowledged for two records")
                places[partition, offset] = id
                require(last.get(partition, -1) < id, f"{feed.name}: record {id} lies after {last.get(partition)} in partition {partition}")
                last[partition] = id
        for partition, end in self.ends().items():
            held = sum(1 for place in places if place[0] == partition)
            require(held == end, f"partition {partition} ends at {end} and {held} records were acknowledged in it")

    def every_record_was_read(self, count):
        places = {(partition, offset): id for feed in self.feeds for partition, offset, id in feed.acked}
        seen = set()
        for member in self.members:
            for _, partition, first, ids, _ in member.reads:
                for offset, id in enumerate(ids, first):
                    require(places.get((partition, offset)) == id, f"{member.name} read {id} at {partition}@{offset}, where {places.get((partition, offset))} was acknowledged")
                    seen.add(id)
        missing = sorted(set(places.values()) - seen)
        require(not missing, f"{len(missing)} records were never read, among them {missing[:10]}")
        require(len(seen) == count, f"{len(seen)} records of {count} were read")

    def each_partition_had_one_reader_at_a_time(self):
        """A member that was thrown out learns it late, so its time may overlap with the next owner's. That it happens
        at all is judged by nobody_was_thrown_out."""
        by_partition = collections.defaultdict(list)
        for member in self.members:
            for ownership in member.ownerships():
                by_partition[ownership.partition].append(ownership)
            for at, partition, first, _, ownership in member.reads:
                require(ownership is not None, f"{member.name} read {partition}@{first} at {at} and did not own the partition")
        for stretches in by_partition.values():
            stretches.sort(key=lambda ownership: ownership.since)
            for old, new in zip(stretches, stretches[1:]):
                if old.how != "lost":
                    require(old.until is not None and old.until <= new.since, f"two owners at once: {old}; {new}")

    def each_generation_shared_the_partitions_out_once(self):
        """Within one generation no partition belongs to two members, and no member's generation goes back."""
        owner = {}
        for member in self.members:
            last = -1
            for _, generation, partitions in member.assignments:
                if generation < 0:
                    continue
                require(generation >= last, f"{member.name} went from generation {last} back to {generation}")
                last = generation
                for partition in partitions:
                    other = owner.setdefault((generation, partition), member.name)
                    require(other == member.name, f"generation {generation} gave partition {partition} to {other} and {member.name}")

    def commits_only_grow(self):
        commits = sorted(((at, partition, offset, member.name) for member in self.members for at, partition, offset in member.commits))
        last = {}
        for _, partition, offset, name in commits:
            before = last.get(partition, (0, name))
            require(offset >= before[0], f"{name} committed {offset} for partition {partition} after {before[1]} had committed {before[0]}")
            last[partition] = (offset, name)

    def reading_starts_at_the_committed_offset(self):
        """A new owner reads nothing below an offset whose commit had been acknowledged before it became the owner, and
        leaves nothing out. Returns how many records were read more than once."""
        commits = collections.defaultdict(list)
        for member in self.members:
            for at, partition, offset in member.commits:
                commits[partition].append((at, offset))
        for list_of in commits.values():
            list_of.sort()
        frontier = collections.Counter()
        again = 0
        reads = sorted(
            ((at, member.name, partition, first, len(ids), ownership) for member in self.members for at, partition, first, ids, ownership in member.reads),
            key=lambda read: read[0],
        )
        for at, name, partition, first, count, ownership in reads:
            if ownership is not None and ownership.next_offset is not None:
                require(first == ownership.next_offset, f"{name} read {partition}@{first} where {ownership.next_offset} was next")
            else:
                since = at if ownership is None else ownership.since
                known = commits[partition][: bisect.bisect_left(commits[partition], (since, -1))]
                floor = known[-1][1] if known else 0
                require(first >= floor, f"{name} began partition {partition} at {first}, below the committed {floor}")
                require(first <= frontier[partition], f"{name} began partition {partition} at {first}, but only what is below {frontier[partition]} had been read")
            if ownership is not None:
                ownership.next_offset = first + count
            again += max(0, min(first + count, frontier[partition]) - first)
            frontier[partition] = max(frontier[partition], first + count)
        return again

    def everything_is_read_and_committed(self):
        require(not self.behind(), f"{self.behind()}")

    def nobody_was_thrown_out(self):
        for member in self.members:
            require(not member.errors, f"{member.name}: {member.errors[:3]}")
            lost = [str(ownership) for ownership in member.ownerships() if ownership.how == "lost"]
            require(not lost, f"{member.name} lost partitions: {lost[:3]}")


def _numbers(text):
    return set() if text == "-" else {int(word) for word in text.split(",")}
