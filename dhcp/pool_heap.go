package dhcp

import "container/heap"

// slotHeap has the slot that is free first on top; each knows its place.
type slotHeap []*slot

func (h *slotHeap) push(s *slot)   { heap.Push((*slots)(h), s) }
func (h *slotHeap) remove(s *slot) { heap.Remove((*slots)(h), s.pos) }

// slots implements heap.Interface.
type slots []*slot

func (h slots) Len() int           { return len(h) }
func (h slots) Less(i, j int) bool { return h[i].busy().Before(h[j].busy()) }
func (h slots) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

// Push implements heap.Interface.
func (h *slots) Push(x any) {
	s := x.(*slot)
	s.pos = len(*h)
	*h = append(*h, s)
}

// Pop implements heap.Interface.
func (h *slots) Pop() any {
	old := *h
	s := old[len(old)-1]
	old[len(old)-1] = nil
	*h, s.pos = old[:len(old)-1], -1
	return s
}
