// SPDX-License-Identifier: MIT

//! bench/http.h in Rust: as much of HTTP/1.1 as a server needs that answers "hello" to everybody.

use memchr::memchr;

pub const HEAD_MAX: usize = 2048;
pub const BATCH: usize = 16;
pub const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello";

/// All answers are alike: those of pipelined requests lie behind each other.
pub static ANSWERS: [u8; ANSWER.len() * BATCH] = {
    let mut all = [0; ANSWER.len() * BATCH];
    let mut i = 0;
    while i < all.len() {
        all[i] = ANSWER[i % ANSWER.len()];
        i += 1;
    }
    all
};

pub struct Work {
    pub used: usize,
    pub good: usize,
    pub end: Option<&'static str>, // the last answer: behind it the connection is closed
}

struct Head {
    status: u16,
    host: bool,
    close: bool,
}

fn last_answer(status: u16) -> &'static str {
    match status {
        200 => "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        405 => "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        413 => "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        431 => "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        505 => "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        _ => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    }
}

fn first_line(line: &[u8], head: &mut Head) {
    const VERSION: &[u8] = b" HTTP/1.";
    let Some(end) = line.len().checked_sub(VERSION.len() + 1) else {
        head.status = 400;
        return;
    };
    let (front, version) = line.split_at(end);
    let get = front.starts_with(b"GET /");
    let target = if get { &front[4..] } else { front.iter().position(|&b| b == b' ').map_or(&front[..0], |at| &front[at + 1..]) };
    if target.first() != Some(&b'/') || target.contains(&b' ') || !version.starts_with(VERSION) {
        head.status = 400;
        return;
    }
    if !get {
        head.status = 405;
    }
    match version[VERSION.len()] {
        b'1' => return,
        b'0' => (),
        _ => head.status = 505,
    }
    head.close = true;
    head.host = true;
}

fn field(line: &[u8], head: &mut Head) {
    let Some(colon) = line.iter().position(|&b| b == b':') else {
        head.status = 400;
        return;
    };
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || name[colon - 1] == b' ' || name[0] == b' ' || name[0] == b'\t' {
        head.status = 400;
        return;
    }
    match name[0] | 0x20 {
        b'h' => head.host |= name.eq_ignore_ascii_case(b"host"),
        b't' if name.eq_ignore_ascii_case(b"transfer-encoding") => head.status = 413,
        b'c' if name.eq_ignore_ascii_case(b"connection") => {
            head.close |= value.split(|&b| b == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(b"close"))
        }
        b'c' if name.eq_ignore_ascii_case(b"content-length") && value.trim_ascii() != b"0" => head.status = 413,
        _ => (),
    }
}

/// The line without its end, and how many bytes it takes with it.
fn next_line<'a>(rest: &'a [u8], head: &mut Head) -> Option<(&'a [u8], usize)> {
    let end = if rest.len() >= 2 && rest[1] == b'\n' { 1 } else { memchr(b'\n', rest)? };
    if end == 0 || rest[end - 1] != b'\r' {
        head.status = 400;
    }
    Some((&rest[..end.saturating_sub(1)], end + 1))
}

/// The bytes of the first request; None: it was cut.
fn request(from: &[u8], head: &mut Head) -> Option<usize> {
    let (line, mut used) = next_line(from, head)?;
    first_line(line, head);
    while head.status == 200 || head.status == 405 {
        let (line, bytes) = next_line(&from[used..], head)?;
        used += bytes;
        if line.is_empty() {
            break;
        }
        field(line, head);
    }
    if head.status == 200 && !head.host {
        head.status = 400;
    }
    Some(used)
}

pub fn take(from: &[u8]) -> Work {
    let mut work = Work { used: 0, good: 0, end: None };
    while work.used < from.len() && work.good < BATCH {
        let mut head = Head { status: 200, host: false, close: false };
        let Some(bytes) = request(&from[work.used..], &mut head) else {
            if from.len() - work.used >= HEAD_MAX {
                work.end = Some(last_answer(431));
            }
            break;
        };
        work.used += bytes;
        if head.status != 200 || head.close {
            work.end = Some(last_answer(head.status));
            break;
        }
        work.good += 1;
    }
    work
}
