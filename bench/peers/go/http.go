// SPDX-License-Identifier: MIT

// bench/http.h in Go: as much of HTTP/1.1 as a server needs that answers "hello" to everybody.
package main

import "bytes"

const (
	httpHeadMax = 2048
	httpBatch   = 16
	httpAnswer  = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
	refusedTail = "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
)

// All answers are alike: those of pipelined requests lie behind each other.
var httpAnswers = bytes.Repeat([]byte(httpAnswer), httpBatch)

type httpWork struct {
	used, good int
	end        string // the last answer: behind it the connection is closed
}

type httpHead struct {
	status      int
	host, close bool
}

func lastAnswer(status int) string {
	switch status {
	case 200:
		return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
	case 405:
		return "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET" + refusedTail
	case 413:
		return "HTTP/1.1 413 Content Too Large" + refusedTail
	case 431:
		return "HTTP/1.1 431 Request Header Fields Too Large" + refusedTail
	case 505:
		return "HTTP/1.1 505 HTTP Version Not Supported" + refusedTail
	default:
		return "HTTP/1.1 400 Bad Request" + refusedTail
	}
}

func (h *httpHead) firstLine(line []byte) {
	const version = " HTTP/1."
	end := len(line) - len(version) - 1
	if end < 0 {
		h.status = 400
		return
	}
	get := end >= 5 && string(line[:5]) == "GET /"
	target := line[:0]
	if get {
		target = line[4:end]
	} else if at := bytes.IndexByte(line[:end], ' '); at >= 0 {
		target = line[at+1 : end]
	}
	if len(target) == 0 || target[0] != '/' || bytes.IndexByte(target, ' ') >= 0 || string(line[end:end+len(version)]) != version {
		h.status = 400
		return
	}
	if !get {
		h.status = 405
	}
	digit := line[len(line)-1]
	if digit == '1' {
		return
	}
	if digit != '0' {
		h.status = 505
	}
	h.close, h.host = true, true
}

func isWord(text []byte, word string) bool {
	return len(text) == len(word) && bytes.EqualFold(text, []byte(word))
}

func (h *httpHead) field(line []byte) {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || line[colon-1] == ' ' || line[0] == ' ' || line[0] == '\t' {
		h.status = 400
		return
	}
	name, value := line[:colon], line[colon+1:]
	switch line[0] | 0x20 {
	case 'h':
		h.host = h.host || isWord(name, "host")
	case 't':
		if isWord(name, "transfer-encoding") {
			h.status = 413
		}
	case 'c':
		if isWord(name, "connection") {
			for _, word := range bytes.Split(value, []byte(",")) {
				h.close = h.close || isWord(bytes.TrimSpace(word), "close")
			}
		}
		if isWord(name, "content-length") && string(bytes.TrimSpace(value)) != "0" {
			h.status = 413
		}
	}
}

// nextLine gives the line without its end, and how many bytes it takes with it; 0: it was cut.
func (h *httpHead) nextLine(rest []byte) ([]byte, int) {
	end := 1
	if len(rest) < 2 || rest[1] != '\n' {
		end = bytes.IndexByte(rest, '\n')
	}
	if end < 0 {
		return nil, 0
	}
	if end == 0 || rest[end-1] != '\r' {
		h.status = 400
	}
	return rest[:max(end-1, 0)], end + 1
}

// request gives the bytes of the first one; 0: it was cut.
func (h *httpHead) request(from []byte) int {
	line, used := h.nextLine(from)
	if used == 0 {
		return 0
	}
	h.firstLine(line)
	for h.status == 200 || h.status == 405 {
		line, n := h.nextLine(from[used:])
		if n == 0 {
			return 0
		}
		used += n
		if len(line) == 0 {
			break
		}
		h.field(line)
	}
	if h.status == 200 && !h.host {
		h.status = 400
	}
	return used
}

func httpTake(from []byte) (work httpWork) {
	for work.used < len(from) && work.good < httpBatch {
		head := httpHead{status: 200}
		n := head.request(from[work.used:])
		if n == 0 {
			if len(from)-work.used >= httpHeadMax {
				work.end = lastAnswer(431)
			}
			break
		}
		work.used += n
		if head.status != 200 || head.close {
			work.end = lastAnswer(head.status)
			break
		}
		work.good++
	}
	return work
}
