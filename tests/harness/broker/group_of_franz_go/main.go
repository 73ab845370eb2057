// Two franz-go consumers share a topic; one leaves. Prints how many records they read, and what the other one has then.
//
//	group_of_franz_go BOOTSTRAP TOPIC RECORDS PARTITIONS
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 30 * time.Second

type member struct {
	*kgo.Client
	has map[int32]bool
}

func join(bootstrap, topic string) *member {
	one := &member{has: map[int32]bool{}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ConsumerGroup(topic),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(3*time.Second),
		kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, gained map[string][]int32) {
			for _, partition := range gained[topic] {
				one.has[partition] = true
			}
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, given map[string][]int32) {
			for _, partition := range given[topic] {
				delete(one.has, partition)
			}
		}),
	)
	if err != nil {
		panic(err)
	}
	one.Client = client
	return one
}

func (one *member) poll(seen map[string]bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	one.PollFetches(ctx).EachRecord(func(record *kgo.Record) {
		seen[fmt.Sprint(record.Partition, " ", record.Offset)] = true
	})
	one.AllowRebalance()
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	records, _ := strconv.Atoi(os.Args[3])
	partitions, _ := strconv.Atoi(os.Args[4])
	first, second := join(bootstrap, topic), join(bootstrap, topic)
	seen := map[string]bool{}
	end := time.Now().Add(patience)
	for time.Now().Before(end) && (len(seen) < records || len(first.has) != len(second.has)) {
		first.poll(seen)
		second.poll(seen)
	}
	for _, one := range []*member{first, second} {
		if err := one.CommitUncommittedOffsets(context.Background()); err != nil {
			panic(err)
		}
	}
	first.CloseAllowingRebalance()
	for time.Now().Before(end) && len(second.has) < partitions {
		second.poll(seen)
	}
	fmt.Println(len(seen), len(second.has))
	second.CloseAllowingRebalance()
}
