// A member or a producer with franz-go: `franz member ...` or `franz feeder ...`. harness/history.py describes the
// lines that it prints.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	bootstrap = flag.String("bootstrap", "", "")
	group     = flag.String("group", "", "")
	topic     = flag.String("topic", "", "")
	assignor  = flag.String("assignor", "", "")
	name      = flag.String("name", "", "")
	pauseMs   = flag.Int("pause-ms", 0, "")
	first     = flag.Int("first", 0, "")
	count     = flag.Int("count", 0, "")
	rate      = flag.Int("rate", 0, "")
)

func main() {
	role := os.Args[1]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	flag.Parse()
	switch role {
	case "member":
		runMember()
	case "feeder":
		runFeeder()
	default:
		fail(fmt.Errorf("no such role: %s", role))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// member is touched by one goroutine at a time: rebalances are held up while a poll's records are worked on.
type member struct {
	client      *kgo.Client
	lock        sync.Mutex
	owned       map[int32]bool
	uncommitted map[int32]kgo.EpochOffset
}

func runMember() {
	m := &member{owned: map[int32]bool{}, uncommitted: map[int32]kgo.EpochOffset{}}
	balancers := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(*bootstrap),
		kgo.ClientID(*name),
		kgo.ConsumerGroup(*group),
		kgo.ConsumeTopics(*topic),
		kgo.Balancers(balancers[*assignor]),
		kgo.SessionTimeout(6*time.Second),
		kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, gained map[string][]int32) { m.assigned(gained[*topic]) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { m.revoked(gone[*topic]) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, gone map[string][]int32) { m.lost(gone[*topic]) }),
	)
	if err != nil {
		fail(err)
	}
	m.client = client
	leave := commands()
	for !leave.Load() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		fetches := client.PollRecords(ctx, 250)
		cancel()
		worked := m.work(fetches)
		client.AllowRebalance()
		if worked {
			time.Sleep(time.Duration(*pauseMs) * time.Millisecond)
		}
	}
	client.CloseAllowingRebalance()
	say("left", "")
}

func (m *member) work(fetches kgo.Fetches) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	worked := false
	fetches.EachPartition(func(partition kgo.FetchTopicPartition) {
		if len(partition.Records) == 0 {
			return
		}
		worked = true
		sayRead(partition.Partition, partition.Records)
		last := partition.Records[len(partition.Records)-1]
		m.uncommitted[partition.Partition] = kgo.EpochOffset{Epoch: last.LeaderEpoch, Offset: last.Offset + 1}
	})
	m.commit()
	return worked
}

func (m *member) commit() {
	if len(m.uncommitted) == 0 {
		return
	}
	text := make([]string, 0, len(m.uncommitted))
	for partition, offset := range m.uncommitted {
		text = append(text, fmt.Sprintf("%d:%d", partition, offset.Offset))
	}
	offsets := map[string]map[int32]kgo.EpochOffset{*topic: m.uncommitted}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := m.commitSync(ctx, offsets); err != nil {
		if isRebalance(err) {
			say("refused", strings.Join(text, " ")+" "+strings.ReplaceAll(err.Error(), "\n", " "))
		}
		return
	}
	say("committed", strings.Join(text, " "))
	m.uncommitted = map[int32]kgo.EpochOffset{}
}

func isRebalance(err error) bool {
	return errors.Is(err, kerr.RebalanceInProgress) || errors.Is(err, kerr.IllegalGeneration) || errors.Is(err, kerr.UnknownMemberID)
}

func (m *member) assigned(gained []int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, partition := range gained {
		m.owned[partition] = true
	}
	_, generation := m.client.GroupMetadata()
	say("assigned", fmt.Sprintf("%d %s", generation, numbers(keys(m.owned))))
}

func (m *member) revoked(gone []int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.commit()
	m.giveUp("revoked", gone)
}

func (m *member) lost(gone []int32) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.giveUp("lost", gone)
}

func (m *member) giveUp(how string, gone []int32) {
	for _, partition := range gone {
		delete(m.owned, partition)
		delete(m.uncommitted, partition)
	}
	say(how, numbers(gone))
}

func runFeeder() {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(*bootstrap),
		kgo.ClientID(*name),
		kgo.DefaultProduceTopic(*topic),
		kgo.ProducerBatchCompression(kgo.ZstdCompression()),
		kgo.ProducerLinger(5*time.Millisecond),
	)
	if err != nil {
		fail(err)
	}
	out := bufio.NewWriter(os.Stdout)
	var lock sync.Mutex
	failures := 0
	padding := " " + strings.Repeat("x", 90)
	start := time.Now()
	for number := *first; number < *first+*count; number++ {
		record := &kgo.Record{Key: []byte("key-" + strconv.Itoa(number)), Value: []byte(strconv.Itoa(number) + padding)}
		client.Produce(context.Background(), record, func(record *kgo.Record, err error) {
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				failures++
				fmt.Fprintf(out, "error %s %v\n", record.Key, err)
				return
			}
			fmt.Fprintf(out, "acked %d %d %s\n", record.Partition, record.Offset, strings.TrimPrefix(string(record.Key), "key-"))
		})
		if *rate > 0 {
			due := start.Add(time.Duration(number-*first+1) * time.Second / time.Duration(*rate))
			if early := time.Until(due); early > time.Millisecond {
				lock.Lock()
				out.Flush()
				lock.Unlock()
				time.Sleep(early)
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := client.Flush(ctx); err != nil {
		fail(err)
	}
	client.Close()
	lock.Lock()
	defer lock.Unlock()
	fmt.Fprintf(out, "done %d\n", failures)
	out.Flush()
}

// commands: `leave` asks for a clean end; the end of input ends the process, because whoever started it is gone.
func commands() *atomic.Bool {
	leave := &atomic.Bool{}
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			if lines.Text() == "leave" {
				leave.Store(true)
			}
		}
		if !leave.Load() {
			os.Exit(3)
		}
	}()
	return leave
}

var sayLock sync.Mutex

func say(event, rest string) {
	sayLock.Lock()
	defer sayLock.Unlock()
	line := fmt.Sprintf("%s %d %s", event, time.Now().UnixMicro(), rest)
	os.Stdout.WriteString(strings.TrimRight(line, " ") + "\n")
}

func sayRead(partition int32, records []*kgo.Record) {
	var run []string
	var from int64
	for _, record := range records {
		if len(run) > 0 && record.Offset != from+int64(len(run)) {
			say("read", fmt.Sprintf("%d %d %s", partition, from, strings.Join(run, " ")))
			run = nil
		}
		if len(run) == 0 {
			from = record.Offset
		}
		id, _, _ := strings.Cut(string(record.Value), " ")
		run = append(run, id)
	}
	if len(run) > 0 {
		say("read", fmt.Sprintf("%d %d %s", partition, from, strings.Join(run, " ")))
	}
}

func keys(set map[int32]bool) []int32 {
	list := make([]int32, 0, len(set))
	for key := range set {
		list = append(list, key)
	}
	return list
}

func numbers(partitions []int32) string {
	if len(partitions) == 0 {
		return "-"
	}
	sorted := append([]int32(nil), partitions...)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i] < sorted[j] })
	words := make([]string, len(sorted))
	for i, partition := range sorted {
		words[i] = strconv.Itoa(int(partition))
	}
	return strings.Join(words, ",")
}
