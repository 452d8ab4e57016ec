package dhcp

import "math/bits"

// bitset is a set of the numbers below its size that finds the next number not in it
// without looking at those before: each level has a bit for every word of the level
// below that is full.
type bitset struct {
	size   int
	levels [][]uint64
}

func newBitset(size int) *bitset {
	b := &bitset{size: size}
	for n := size; ; {
		words := (n + 63) / 64
		level := make([]uint64, words)
		if rest := n % 64; rest != 0 {
			level[words-1] = ^uint64(0) << rest // what is beyond is full
		}
		b.levels = append(b.levels, level)
		if words <= 1 {
			return b
		}
		n = words
	}
}

func (b *bitset) has(i int) bool { return b.levels[0][i/64]&(1<<(i%64)) != 0 }

func (b *bitset) set(i int) {
	for _, l := range b.levels {
		l[i/64] |= 1 << (i % 64)
		if l[i/64] != ^uint64(0) {
			return
		}
		i /= 64
	}
}

func (b *bitset) clear(i int) {
	for _, l := range b.levels {
		full := l[i/64] == ^uint64(0)
		l[i/64] &^= 1 << (i % 64)
		if !full {
			return
		}
		i /= 64
	}
}

// next is the first number from i on that is not in the set; -1: there is none.
func (b *bitset) next(i int) int {
	up := 0
	for {
		if up >= len(b.levels) || i/64 >= len(b.levels[up]) {
			return -1
		}
		if w := ^b.levels[up][i/64] &^ (1<<(i%64) - 1); w != 0 {
			i = i/64*64 + bits.TrailingZeros64(w)
			break
		}
		i = i/64 + 1 // in the level above: the next word
		up++
	}
	for ; up > 0; up-- {
		i = i*64 + bits.TrailingZeros64(^b.levels[up-1][i])
	}
	return i
}
