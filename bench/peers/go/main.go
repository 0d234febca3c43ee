// SPDX-License-Identifier: MIT

// go-bench CASE [WORKERS] [N] - the cases of docs/BENCHMARKS.md, written for Go's advantage.
//
// Five rounds, one line each: `CASE VALUE`, nanoseconds per operation unless the case says otherwise. WORKERS is
// GOMAXPROCS; Go has no current-thread runtime, so 0 is 1. Go has no join handle: a value comes back through a channel, many of
// them through a slice and a WaitGroup. There are no spawn_remote and no blocking: every thread of a Go program belongs to its
// runtime, and every goroutine may block.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

const (
	rounds     = 5
	noSuchCase = 3
)

// bench is one case as it was asked for.
type bench struct {
	name string
	n    int
}

type benchCase struct {
	name string
	n    int
	run  func(b bench)
}

var cases = []benchCase{
	{"spawn", 1_000_000, spawn},
	{"spawn_join", 300_000, spawnJoin},
	{"join_all", 100_000, joinAll},
	{"yield", 1_000, yield},
	{"ping_pong", 100_000, pingPong},
	{"ping_pong_chan", 100_000, pingPong},
	{"switch", 500_000, switchToken},
	{"chained", 300_000, chained},
	{"skynet", 1_000_000, skynet},
	{"fib", 30, fib},
	{"mpsc", 2_000_000, func(b bench) { messages(b, 1, 1) }},
	{"mpsc4", 2_000_000, func(b bench) { messages(b, 4, 1) }},
	{"mpmc", 2_000_000, func(b bench) { messages(b, 4, 4) }},
	{"mutex", 100, mutex},
	{"timer_churn", 0, timerChurn},
	{"timer_many", 1_000_000, timerMany},
	{"sleep_error", 300, sleepError},
	{"mem_sleep", 1_000_000, memSleep},
	{"mem_wait", 1_000_000, memWait},
	{"tasks100k", 100_000, tasks100k},
	{"file_read", 200_000, func(b bench) { fileRead(b, 1) }},
	{"file_read8", 200_000, func(b bench) { fileRead(b, 8) }},
	{"file_read64", 200_000, func(b bench) { fileRead(b, 64) }},
	// Goroutines have stacks: they are what a fiber compares with.
	{"spawn_fiber", 1_000_000, spawn},
	{"yield_fiber", 1_000, yield},
	{"switch_fiber", 500_000, switchToken},
	{"skynet_fiber", 1_000_000, skynet},
	{"mem_fiber", 100_000, memWait},
}

// rounds runs body five times; it does ops operations and returns its checksum.
func (b bench) rounds(ops int, expected int, body func() int) {
	for i := 0; i < rounds; i++ {
		start := time.Now()
		sum := body()
		took := time.Since(start)
		b.verify(sum, expected)
		fmt.Printf("%s %.2f\n", b.name, float64(took.Nanoseconds())/float64(ops))
	}
	b.checksum(expected)
}

func (b bench) verify(sum int, expected int) {
	if sum != expected {
		fmt.Fprintf(os.Stderr, "%s: the checksum is %d instead of %d\n", b.name, sum, expected)
		os.Exit(1)
	}
}

func (b bench) checksum(sum int) {
	fmt.Fprintf(os.Stderr, "checksum %s %d\n", b.name, sum)
}

// sumBelow is 0 + 1 + ... + (n - 1).
func sumBelow(n int) int {
	return n * (n - 1) / 2
}

func number(position int, otherwise int) int {
	if len(os.Args) <= position {
		return otherwise
	}
	value, err := strconv.Atoi(os.Args[position])
	if err != nil || value < 0 {
		fmt.Fprintf(os.Stderr, "go-bench: %s is not a number\n", os.Args[position])
		os.Exit(2)
	}
	return value
}

func main() {
	if len(os.Args) < 2 || os.Args[1] == "--list" {
		for _, c := range cases {
			fmt.Println(c.name)
		}
		return
	}
	if os.Args[1] == "--servers" {
		fmt.Println("echo\nhttp")
		return
	}
	if os.Args[1] == "echo" || os.Args[1] == "http" { // they end by a signal
		workers := max(number(2, 2), 1)
		runtime.GOMAXPROCS(workers)
		serve(os.Args[1], workers, number(3, 7000))
	}
	for _, c := range cases {
		if c.name == os.Args[1] {
			runtime.GOMAXPROCS(max(number(2, 2), 1))
			c.run(bench{c.name, number(3, c.n)})
			return
		}
	}
	fmt.Fprintf(os.Stderr, "go-bench: there is no case %s\n", os.Args[1])
	os.Exit(noSuchCase)
}
