// SPDX-License-Identifier: MIT

// The servers, echo and http: a goroutine for each connection, until a signal; then what a request has cost (bench/serve.h has the protocol).
package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

const (
	bufBytes  = 2048
	echoBytes = 64
)

var (
	counted atomic.Uint64
	shared  bool // several threads count
)

func count(n int) {
	if shared {
		counted.Add(uint64(n))
	} else {
		counted.Store(counted.Load() + uint64(n))
	}
}

// mark is one end of what is counted.
type mark struct {
	counted        uint64
	userUs, systUs int64
}

func now() mark {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	us := func(t syscall.Timeval) int64 { return t.Sec*1_000_000 + t.Usec }
	return mark{counted.Load(), us(usage.Utime), us(usage.Stime)}
}

func report(name string, begin, end mark) {
	unit := uint64(1)
	if name == "echo" {
		unit = echoBytes
	}
	requests := (end.counted - begin.counted) / unit
	per := 0.0
	if requests > 0 {
		per = 1 / float64(requests)
	}
	user := float64(end.userUs-begin.userUs) * per
	system := float64(end.systUs-begin.systUs) * per
	fmt.Printf("%s %.3f us epoll\n%s_user %.3f\n%s_system %.3f\n%s_requests %d\n", name, user+system, name, user, name, system, name, requests)
}

// untilTold waits for the end, and reports.
func untilTold(name string, signals <-chan os.Signal) {
	var begin, end mark
	ended := false
	for s := range signals {
		switch s {
		case syscall.SIGUSR1:
			begin = now()
		case syscall.SIGUSR2:
			end, ended = now(), true
		default:
			if !ended {
				end = now()
			}
			report(name, begin, end)
			os.Exit(0)
		}
	}
}

func echoClient(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, bufBytes)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if _, err = conn.Write(buf[:n]); err != nil {
			return
		}
		count(n)
	}
}

func httpClient(conn net.Conn) {
	defer conn.Close()
	buf := make([]byte, httpHeadMax)
	bytes := 0
	for {
		n, err := conn.Read(buf[bytes:])
		if err != nil {
			return
		}
		bytes += n
		for {
			work := httpTake(buf[:bytes])
			copy(buf, buf[work.used:bytes])
			bytes -= work.used
			if work.good > 0 {
				if _, err := conn.Write(httpAnswers[:work.good*len(httpAnswer)]); err != nil {
					return
				}
				count(work.good)
			}
			if work.end != "" {
				_, _ = conn.Write([]byte(work.end))
				count(1)
				return
			}
			if work.good < httpBatch || bytes == 0 {
				break
			}
		}
	}
}

func serve(name string, workers, port int) {
	if port > 65535 {
		fmt.Fprintf(os.Stderr, "%d is no port: those are 1 to 65535, and 0 is one that is free\n", port)
		os.Exit(2)
	}
	shared = workers > 1
	client := echoClient
	if name == "http" {
		client = httpClient
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM, syscall.SIGINT)
	listener, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		fmt.Fprintf(os.Stderr, "go-bench: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("%s_listens %d\n", name, listener.Addr().(*net.TCPAddr).Port)
	go untilTold(name, signals)
	for {
		if conn, err := listener.Accept(); err == nil {
			go client(conn)
		}
	}
}
