// SPDX-License-Identifier: MIT

// Random reads of 4 KiB from a file that is in memory: 1, 8 and 64 goroutines that block in the system call.
package main

import (
	"encoding/binary"
	"os"
)

const pageBytes = 4096

func pagesOf(reads int) uint64 {
	if reads < 10_000 {
		return 256
	}
	return 65_536
}

func nextPage(state *uint64, pages uint64) uint64 {
	*state = *state*6364136223846793005 + 1442695040888963407
	return (*state >> 33) % pages
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// fileMake gives one without a name, in memory: it has just been written.
func fileMake(pages uint64) *os.File {
	file, err := os.CreateTemp("/tmp", "weft-bench-go-")
	must(err)
	must(os.Remove(file.Name()))
	page := make([]byte, pageBytes)
	for i := uint64(0); i < pages; i++ {
		binary.NativeEndian.PutUint64(page, i)
		_, err := file.Write(page)
		must(err)
	}
	return file
}

func fileSum(readers, each int, pages uint64) int {
	sum := uint64(0)
	for seed := 0; seed < readers; seed++ {
		state := uint64(seed)
		for i := 0; i < each; i++ {
			sum += nextPage(&state, pages)
		}
	}
	return int(sum)
}

func fileReader(file *os.File, seed, n int, pages uint64, sums chan<- uint64) {
	page := make([]byte, pageBytes)
	state, sum := uint64(seed), uint64(0)
	for i := 0; i < n; i++ {
		_, err := file.ReadAt(page, int64(nextPage(&state, pages)*pageBytes))
		must(err)
		sum += binary.NativeEndian.Uint64(page)
	}
	sums <- sum
}

func fileRead(b bench, readers int) {
	pages := pagesOf(b.n)
	each := b.n / readers
	file := fileMake(pages)
	b.rounds(each*readers, fileSum(readers, each, pages), func() int {
		sums := make(chan uint64, readers)
		for seed := 0; seed < readers; seed++ {
			go fileReader(file, seed, each, pages, sums)
		}
		sum := uint64(0)
		for i := 0; i < readers; i++ {
			sum += <-sums
		}
		return int(sum)
	})
}
