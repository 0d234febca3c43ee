// SPDX-License-Identifier: MIT

// Cases about goroutines that wait for one another.
package main

import (
	"sync"
	"sync/atomic"
)

func pingPong(b bench) {
	b.rounds(b.n, sumBelow(b.n), func() int {
		var sum atomic.Int64
		var all sync.WaitGroup
		all.Add(b.n)
		for i := 0; i < b.n; i++ {
			go func() {
				ping, pong := make(chan int, 1), make(chan int, 1)
				go func() { pong <- <-ping }()
				ping <- i
				sum.Add(int64(<-pong))
				all.Done()
			}()
		}
		all.Wait()
		return int(sum.Load())
	})
}

// switchToken prints nanoseconds per hand-over, of which a round has two.
func switchToken(b bench) {
	b.rounds(2*b.n, 2*b.n, func() int {
		there, back, counted := make(chan struct{}, 1), make(chan struct{}, 1), make(chan int, 2)
		go func() {
			count := 0
			for i := 0; i < b.n; i++ {
				<-there
				count++
				back <- struct{}{}
			}
			counted <- count
		}()
		go func() {
			count := 0
			for i := 0; i < b.n; i++ {
				there <- struct{}{}
				<-back
				count++
			}
			counted <- count
		}()
		return <-counted + <-counted
	})
}

// messages sends N values in all through a channel of 1,024.
func messages(b bench, producers int, consumers int) {
	each := b.n / producers
	b.rounds(each*producers, producers*sumBelow(each), func() int {
		channel, sums := make(chan int, 1024), make(chan int, consumers)
		var sending sync.WaitGroup
		sending.Add(producers)
		for p := 0; p < producers; p++ {
			go func() {
				for i := 0; i < each; i++ {
					channel <- i
				}
				sending.Done()
			}()
		}
		for c := 0; c < consumers; c++ {
			go func() {
				sum := 0
				for value := range channel {
					sum += value
				}
				sums <- sum
			}()
		}
		sending.Wait()
		close(channel)
		sum := 0
		for c := 0; c < consumers; c++ {
			sum += <-sums
		}
		return sum
	})
}

// mutex has N goroutines that lock, add one and unlock 10,000 times each.
func mutex(b bench) {
	b.rounds(b.n*10_000, b.n*10_000, func() int {
		var lock sync.Mutex
		var all sync.WaitGroup
		count := 0
		all.Add(b.n)
		for i := 0; i < b.n; i++ {
			go func() {
				for k := 0; k < 10_000; k++ {
					lock.Lock()
					count++
					lock.Unlock()
				}
				all.Done()
			}()
		}
		all.Wait()
		return count
	})
}
