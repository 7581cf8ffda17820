// Prints what Go's sort.Slice makes of lists with equal keys, for pdqsort.test.ts: go run sort.go > sort.json
package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"sort"
)

type item struct{ key, at int }

var shapes = map[string]func(i, n int, random func(int) int) int{
	"two keys":      func(_, _ int, random func(int) int) int { return random(2) },
	"few keys":      func(_, _ int, random func(int) int) int { return random(7) },
	"many keys":     func(_, n int, random func(int) int) int { return random(n) },
	"rising pairs":  func(i, _ int, _ func(int) int) int { return i / 2 },
	"falling pairs": func(i, n int, _ func(int) int) int { return (n - i) / 2 },
	"falling, some are equal": func(i, n int, _ func(int) int) int {
		if i%5 == 0 {
			return n - i - 1
		}
		return n - i
	},
	"falling": func(i, n int, _ func(int) int) int { return n - i },
	"hill":    func(i, n int, _ func(int) int) int { return min(i, n-i) },
	"teeth":   func(i, _ int, _ func(int) int) int { return i % 9 },
	"almost rising": func(i, n int, random func(int) int) int {
		if random(30) == 0 {
			return random(n)
		}
		return i / 3
	},
	"rising, the end is not": func(i, n int, random func(int) int) int {
		if i > n-4 {
			return random(n)
		}
		return i / 3
	},
}

// The same numbers as the generator in the test.
func xorshift() func(int) int {
	state := uint32(2463534242)
	return func(limit int) int {
		state ^= state << 13
		state ^= state >> 17
		state ^= state << 5
		return int(state) % limit
	}
}

func checksum(keys []int) uint32 {
	items := make([]item, len(keys))
	for at, key := range keys {
		items[at] = item{key, at}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].key < items[j].key })
	hash := fnv.New32a()
	for _, item := range items {
		fmt.Fprintf(hash, "%d,", item.at)
	}
	return hash.Sum32()
}

// McIlroy's antiquicksort: keys that make every pivot of this very sort a bad one.
func killer(n int) []int {
	keys := make([]int, n)
	order := make([]int, n)
	for i := range keys {
		keys[i], order[i] = math.MaxInt, i
	}
	solid, candidate := 0, 0
	sort.Slice(order, func(i, j int) bool {
		x, y := order[i], order[j]
		if keys[x] == math.MaxInt && keys[y] == math.MaxInt {
			if y == candidate {
				keys[y] = solid
			} else {
				keys[x] = solid
			}
			solid++
		}
		if keys[x] == math.MaxInt {
			candidate = x
		} else if keys[y] == math.MaxInt {
			candidate = y
		}
		return keys[x] < keys[y]
	})
	for i, key := range keys {
		if key == math.MaxInt {
			keys[i] = solid
		}
	}
	return keys
}

func main() {
	sizes := []int{}
	for n := 1; n <= 80; n++ {
		sizes = append(sizes, n)
	}
	sizes = append(sizes, 99, 100, 127, 128, 129, 250, 500, 1000)
	checksums := map[string][]uint32{}
	for name, keyAt := range shapes {
		random := xorshift()
		for _, n := range sizes {
			keys := make([]int, n)
			for i := range keys {
				keys[i] = keyAt(i, n, random)
			}
			checksums[name] = append(checksums[name], checksum(keys))
		}
	}
	type kill struct {
		Keys     []int  `json:"keys"`
		Checksum uint32 `json:"checksum"`
	}
	kills := []kill{}
	for _, n := range []int{64, 100, 150, 300} {
		// The last keys are equal: heap sort takes over while they are in its range.
		for _, settled := range []int{n / 4, n / 2, 3 * n / 4} {
			keys := killer(n)
			for i := range keys {
				keys[i] = min(keys[i], settled)
			}
			kills = append(kills, kill{keys, checksum(keys)})
		}
	}
	err := json.NewEncoder(os.Stdout).Encode(map[string]any{"sizes": sizes, "checksums": checksums, "killers": kills})
	if err != nil {
		panic(err)
	}
}
