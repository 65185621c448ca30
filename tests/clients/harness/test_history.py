"""The judge is judged: each fault that a broker could make is planted in a good history and has to be found.

    python3 -m unittest discover -s tests/clients -t tests/clients
"""

import unittest

from harness.history import History
from harness.report import Failure


def good():
    """Two partitions of four records; `a` reads two of partition 0 and all of 1 and is killed before it commits the
    second of them; `b` reads the rest."""
    history = History()
    feed = history.feed("feed")
    for id in range(8):
        feed.line(f"acked {id % 2} {id // 2} {id}")
    feed.line("done 0")
    a, b = history.member("a"), history.member("b")
    for line in (
        "assigned 100 1 0,1",
        "read 110 0 0 0 2",
        "read 110 1 0 1 3 5 7",
        "committed 120 0:1 1:4",
    ):
        a.line(line)
    for ownership in a.owned.values():
        ownership.until, ownership.how = 200, "died"
    a.past, a.owned = list(a.owned.values()), {}
    for line in (
        "assigned 300 2 0,1",
        "read 310 0 1 2 4 6",
        "committed 320 0:4",
        "left 400",
    ):
        b.line(line)
    return history


FACTS = (
    lambda history: history.every_send_was_acknowledged(8),
    lambda history: history.the_log_holds_each_record_once_and_in_order(),
    lambda history: history.every_record_was_read(8),
    lambda history: history.each_partition_had_one_reader_at_a_time(),
    lambda history: history.each_generation_shared_the_partitions_out_once(),
    lambda history: history.commits_only_grow(),
    lambda history: history.reading_starts_at_the_committed_offset(),
    lambda history: history.everything_is_read_and_committed(),
    lambda history: history.nobody_was_thrown_out(),
)


def judge(history):
    for fact in FACTS:
        fact(history)


class TheJudge(unittest.TestCase):
    def finds(self, words, history):
        with self.assertRaisesRegex(Failure, words):
            judge(history)

    def test_accepts_a_good_history_and_counts_what_was_read_again(self):
        judge(good())
        self.assertEqual(good().reading_starts_at_the_committed_offset(), 1)

    def test_finds_a_send_that_failed(self):
        history = good()
        history.feeds[0].line("error 9 timed out")
        self.finds("sends failed", history)

    def test_finds_a_record_that_was_stored_twice(self):
        history = good()
        history.feeds[0].acked[7] = (1, 4, 7)
        self.finds("partition 1 ends at 5 and 4", history)

    def test_finds_records_that_changed_their_order(self):
        history = good()
        acked = history.feeds[0].acked
        acked[4], acked[6] = (0, 3, 4), (0, 2, 6)
        self.finds("lies after", history)

    def test_finds_a_record_that_nobody_read(self):
        history = good()
        at, partition, first, ids, ownership = history.members[1].reads[0]
        history.members[1].reads[0] = (at, partition, first, ids[:-1], ownership)
        self.finds("never read", history)

    def test_finds_a_record_that_was_altered(self):
        history = good()
        history.members[1].reads[0][3][1] = 5
        self.finds("read 5 at 0@2", history)

    def test_finds_two_owners_at_once(self):
        history = good()
        history.members[0].past[0].until = 301
        self.finds("two owners at once", history)

    def test_finds_a_reader_that_is_no_owner(self):
        history = good()
        history.members[1].line("read 410 1 3 7")
        self.finds("did not own", history)

    def test_finds_a_partition_given_out_twice_in_a_generation(self):
        history = good()
        history.members[0].assignments.append((150, 2, {1}))
        self.finds("generation 2 gave partition 1", history)

    def test_finds_a_generation_that_goes_back(self):
        history = good()
        history.members[1].line("assigned 405 1 -")
        self.finds("back to 1", history)

    def test_finds_a_commit_that_goes_back(self):
        history = good()
        history.members[1].commits.append((330, 1, 2))
        self.finds("committed 2 for partition 1", history)

    def test_finds_reading_below_a_committed_offset(self):
        history = good()
        at, partition, _, ids, ownership = history.members[1].reads[0]
        history.members[1].reads[0] = (at, partition, 0, [0, *ids], ownership)
        self.finds("below the committed 1", history)

    def test_finds_a_gap_between_two_owners(self):
        history = good()
        at, partition, _, _, ownership = history.members[1].reads[0]
        history.members[1].reads[0] = (at, partition, 3, [6], ownership)
        with self.assertRaisesRegex(Failure, "only what is below 2"):
            history.reading_starts_at_the_committed_offset()

    def test_finds_a_gap_within_one_owner(self):
        history = good()
        at, partition, _, _, ownership = history.members[0].reads[0]
        history.members[0].reads[0] = (at, partition, 0, [0], ownership)
        history.members[0].reads.insert(1, (at + 1, partition, 2, [4], ownership))
        with self.assertRaisesRegex(Failure, "where 1 was next"):
            history.reading_starts_at_the_committed_offset()

    def test_finds_what_was_read_and_not_committed(self):
        history = good()
        history.members[1].commits.clear()
        self.finds("read to 4, committed 1", history)

    def test_finds_a_member_that_was_thrown_out(self):
        history = good()
        history.members[1].past[0].how = "lost"
        self.finds("lost partitions", history)


if __name__ == "__main__":
    unittest.main()
