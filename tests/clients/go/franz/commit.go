package main

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// commitSync commits and waits; an error of any partition is the error.
func (m *member) commitSync(ctx context.Context, offsets map[string]map[int32]kgo.EpochOffset) error {
	var failed error
	m.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		failed = err
		if err != nil {
			return
		}
		for _, topic := range response.Topics {
			for _, partition := range topic.Partitions {
				if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
					failed = err
				}
			}
		}
	})
	return failed
}
