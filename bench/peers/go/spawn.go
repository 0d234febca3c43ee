// SPDX-License-Identifier: MIT

// Cases about making goroutines, ending them, and giving the thread back.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

func spawn(b bench) {
	b.rounds(b.n, b.n, func() int {
		var left atomic.Int64
		left.Store(int64(b.n))
		done := make(chan struct{})
		for i := 0; i < b.n; i++ {
			go func() {
				if left.Add(-1) == 0 {
					close(done)
				}
			}()
		}
		<-done
		return b.n - int(left.Load())
	})
}

func spawnJoin(b bench) {
	b.rounds(b.n, sumBelow(b.n), func() int {
		sum := 0
		result := make(chan int)
		for i := 0; i < b.n; i++ {
			go func() { result <- i }()
			sum += <-result
		}
		return sum
	})
}

func joinAll(b bench) {
	b.rounds(b.n, sumBelow(b.n), func() int {
		results := make([]int, b.n)
		var all sync.WaitGroup
		all.Add(b.n)
		for i := 0; i < b.n; i++ {
			go func() {
				results[i] = i
				all.Done()
			}()
		}
		all.Wait()
		sum := 0
		for _, value := range results {
			sum += value
		}
		return sum
	})
}

// tasks100k prints milliseconds a round, then the process's peak of resident memory in MB.
func tasks100k(b bench) {
	for round := 0; round < rounds; round++ {
		start := time.Now()
		var all sync.WaitGroup
		all.Add(b.n)
		for i := 0; i < b.n; i++ {
			go all.Done()
		}
		all.Wait()
		fmt.Printf("%s %.3f ms\n", b.name, time.Since(start).Seconds()*1e3)
	}
	fmt.Printf("%s_rss %.1f\n", b.name, float64(peakBytes())/1e6)
	b.checksum(b.n)
}

// yield has N goroutines yield a million times together.
func yield(b bench) {
	each := max(1_000_000/max(b.n, 1), 1)
	b.rounds(each*b.n, each*b.n, func() int {
		counts := make([]int, b.n)
		var all sync.WaitGroup
		all.Add(b.n)
		for i := 0; i < b.n; i++ {
			go func() {
				count := 0
				for k := 0; k < each; k++ {
					runtime.Gosched()
					count++
				}
				counts[i] = count
				all.Done()
			}()
		}
		all.Wait()
		sum := 0
		for _, count := range counts {
			sum += count
		}
		return sum
	})
}

func chain(left int, count int, done chan int) {
	if left == 0 {
		done <- count
		return
	}
	go chain(left-1, count+1, done)
}

func chained(b bench) {
	b.rounds(b.n, b.n, func() int {
		done := make(chan int)
		go chain(b.n, 0, done)
		return <-done
	})
}

func node(number int, size int, result chan int) {
	if size == 1 {
		result <- number
		return
	}
	parts := make(chan int, 10)
	for i := 0; i < 10; i++ {
		go node(number+i*(size/10), size/10, parts)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-parts
	}
	result <- sum
}

// skynet has N leaves, a power of ten; nanoseconds per goroutine, the inner ones counted.
func skynet(b bench) {
	b.rounds((10*b.n-1)/9, sumBelow(b.n), func() int {
		result := make(chan int)
		go node(0, b.n, result)
		return <-result
	})
}

func fibInto(n int, result chan int) {
	result <- fibOf(n)
}

func fibOf(n int) int {
	if n < 2 {
		return n
	}
	left := make(chan int, 1)
	go fibInto(n-1, left)
	right := fibOf(n - 2)
	return <-left + right
}

func fibPlain(n int) int {
	a, b := 0, 1
	for ; n > 0; n-- {
		a, b = b, a+b
	}
	return a
}

// fib prints nanoseconds per call, the inline ones counted.
func fib(b bench) {
	b.rounds(2*fibPlain(b.n+1)-1, fibPlain(b.n), func() int {
		result := make(chan int, 1)
		go fibInto(b.n, result)
		return <-result
	})
}
