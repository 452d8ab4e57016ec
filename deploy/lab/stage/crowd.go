package stage

import (
	"bytes"
	"context"
	"fmt"
)

// crowdBatch records are in one request.
const crowdBatch = 500

// FillCrowd adds n plain records, which no machine stands behind.
func (s *Stage) FillCrowd(ctx context.Context, n int) error {
	for from := 0; from < n; from += crowdBatch {
		var b bytes.Buffer
		for i := from; i < min(n, from+crowdBatch); i++ {
			b.WriteString(crowdRecord(i))
		}
		if _, err := s.API.Apply(ctx, &b); err != nil {
			return fmt.Errorf("records from %d on: %w", from, err)
		}
	}
	return nil
}

// crowdRecord is the i-th record, in a rack of 40. Its address is in no Subnet.
func crowdRecord(i int) string {
	return fmt.Sprintf(`---
kind: Hardware
metadata:
  name: node-%05d
  labels: {rack: c%03d, site: hall-%d, role: %s}
spec:
  rack: c%03d
  position: "%d"
  assetTag: B-%06d
  interfaces: [{mac: "02:00:00:%02x:%02x:%02x", addresses: ["10.128.%d.%d/9"]}]
`, i, i/40, i%4, [...]string{"compute", "db", "storage"}[i%3], i/40, 1+i%40, i, i>>16&255, i>>8&255, i&255, i/250, 1+i%250)
}
