// SPDX-License-Identifier: MIT

// Cases about time and about resident memory.
package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const churns = 500_000

// timerChurn arms and cancels 500,000 timers while N others are live. AfterFunc, since a timer whose channel nobody
// receives from is not put into the heap at all.
func timerChurn(b bench) {
	nothing := func() {}
	others := make([]*time.Timer, b.n)
	for i := range others {
		others[i] = time.AfterFunc(time.Duration(60_000+i*60%3_600_000)*time.Millisecond, nothing)
	}
	b.rounds(churns, churns, func() int {
		stopped := 0
		for i := 0; i < churns; i++ {
			timer := time.AfterFunc(time.Duration(3_600_000+i%1000)*time.Millisecond, nothing)
			if timer.Stop() {
				stopped++
			}
		}
		return stopped
	})
	for _, other := range others {
		other.Stop()
	}
}

func timerMany(b bench) {
	b.rounds(b.n, b.n, func() int {
		var all sync.WaitGroup
		var woken atomic.Int64
		all.Add(b.n)
		for i := 0; i < b.n; i++ {
			go func() {
				time.Sleep(time.Duration(i%100) * time.Millisecond)
				woken.Add(1)
				all.Done()
			}()
		}
		all.Wait()
		return int(woken.Load())
	})
}

// sleepError prints the median lateness of N sleeps of 1 ms, in nanoseconds, in each round.
func sleepError(b bench) {
	for round := 0; round < rounds; round++ {
		late := make([]int64, 0, b.n)
		for i := 0; i < b.n; i++ {
			start := time.Now()
			time.Sleep(time.Millisecond)
			late = append(late, (time.Since(start) - time.Millisecond).Nanoseconds())
		}
		slices.Sort(late)
		fmt.Printf("%s %d\n", b.name, late[len(late)/2])
	}
	b.checksum(b.n)
}

func residentBytes() int {
	var size, resident int
	text, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(text), &size, &resident)
	}
	if err != nil {
		panic(err)
	}
	return resident * os.Getpagesize()
}

func peakBytes() int {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if after, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			var kilobytes int
			if _, err := fmt.Sscan(after, &kilobytes); err != nil {
				panic(err)
			}
			return kilobytes * 1024
		}
	}
	panic("no VmHWM")
}

// bytesEach starts N goroutines of wait and prints the resident bytes of each. One value a process: a second round would
// live in what the first one left.
func bytesEach(b bench, wait func()) {
	var started atomic.Int64
	before := residentBytes()
	for i := 0; i < b.n; i++ {
		go func() {
			started.Add(1)
			wait()
		}()
	}
	for started.Load() < int64(b.n) {
		time.Sleep(5 * time.Millisecond)
	}
	time.Sleep(50 * time.Millisecond) // the last ones that counted may not be waiting yet
	fmt.Printf("%s %.1f\n", b.name, float64(residentBytes()-before)/float64(b.n))
	b.checksum(int(started.Load()))
}

func memSleep(b bench) {
	bytesEach(b, func() { time.Sleep(time.Hour) })
}

func memWait(b bench) {
	gate := make(chan struct{})
	bytesEach(b, func() { <-gate })
}
