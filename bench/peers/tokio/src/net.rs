// SPDX-License-Identifier: MIT

//! The servers, echo and http: a task for each connection, until a signal; then what a request has cost (bench/serve.h has the protocol).
//!
//! The signals have plain handlers, so that Tokio's own driver for them is not part of what a request costs. The HTTP is that of bench/http.h, line
//! by line: what is compared is the runtime.

use crate::http;
use std::io::Write;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const BUF_BYTES: usize = 2048;
const ECHO_BYTES: u64 = 64;

/// What was counted: with one worker by a plain store, as on the other sides.
static COUNTED: AtomicU64 = AtomicU64::new(0);
static SHARED: AtomicBool = AtomicBool::new(false);

fn count(n: u64) {
    if SHARED.load(Relaxed) {
        COUNTED.fetch_add(n, Relaxed);
    } else {
        COUNTED.store(COUNTED.load(Relaxed) + n, Relaxed);
    }
}

// ---- the window ----

struct Mark {
    set: AtomicBool,
    counted: AtomicU64,
    user_us: AtomicI64,
    system_us: AtomicI64,
}

impl Mark {
    const fn new() -> Mark {
        Mark { set: AtomicBool::new(false), counted: AtomicU64::new(0), user_us: AtomicI64::new(0), system_us: AtomicI64::new(0) }
    }

    /// System calls alone: it is called by a handler.
    fn take(&self) {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
            usage.assume_init()
        };
        let us = |time: libc::timeval| time.tv_sec * 1_000_000 + time.tv_usec;
        self.counted.store(COUNTED.load(Relaxed), Relaxed);
        self.user_us.store(us(usage.ru_utime), Relaxed);
        self.system_us.store(us(usage.ru_stime), Relaxed);
        self.set.store(true, Relaxed);
    }
}

static BEGIN: Mark = Mark::new();
static END: Mark = Mark::new();
static IS_ECHO: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(number: libc::c_int) {
    match number {
        libc::SIGUSR1 => BEGIN.take(),
        libc::SIGUSR2 => END.take(),
        _ => {
            report();
            unsafe { libc::_exit(0) }
        }
    }
}

/// Formats on the stack and writes by a system call: it runs inside of a handler.
fn report() {
    if !END.set.load(Relaxed) {
        END.take();
    }
    let echo = IS_ECHO.load(Relaxed);
    let unit = if echo { ECHO_BYTES } else { 1 };
    let requests = (END.counted.load(Relaxed) - BEGIN.counted.load(Relaxed)) / unit;
    let per = if requests > 0 { 1.0 / requests as f64 } else { 0.0 };
    let user = (END.user_us.load(Relaxed) - BEGIN.user_us.load(Relaxed)) as f64 * per;
    let system = (END.system_us.load(Relaxed) - BEGIN.system_us.load(Relaxed)) as f64 * per;
    let name = if echo { "echo" } else { "http" };
    let mut text = [0u8; 512];
    let mut rest = &mut text[..];
    let _ = write!(rest, "{name} {:.3} us epoll\n{name}_user {user:.3}\n{name}_system {system:.3}\n{name}_requests {requests}\n", user + system);
    let bytes = 512 - rest.len();
    unsafe { libc::write(1, text.as_ptr().cast(), bytes) };
}

fn handle_signals() {
    for number in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGTERM, libc::SIGINT] {
        let handler = on_signal as extern "C" fn(libc::c_int);
        unsafe { libc::signal(number, handler as libc::sighandler_t) };
    }
}

fn raise_descriptors() {
    unsafe {
        let mut limit = MaybeUninit::<libc::rlimit>::zeroed().assume_init();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

// ---- connections ----

async fn echo_client(mut stream: TcpStream) {
    let mut buf = [0u8; BUF_BYTES];
    loop {
        match stream.read(&mut buf).await {
            Ok(0) | Err(_) => return,
            Ok(n) => {
                if stream.write_all(&buf[..n]).await.is_err() {
                    return;
                }
                count(n as u64);
            }
        }
    }
}

async fn http_client(mut stream: TcpStream) {
    let mut buf = [0u8; http::HEAD_MAX];
    let mut bytes = 0;
    loop {
        match stream.read(&mut buf[bytes..]).await {
            Ok(0) | Err(_) => return,
            Ok(n) => bytes += n,
        }
        loop {
            let work = http::take(&buf[..bytes]);
            buf.copy_within(work.used..bytes, 0);
            bytes -= work.used;
            if work.good > 0 {
                if stream.write_all(&http::ANSWERS[..work.good * http::ANSWER.len()]).await.is_err() {
                    return;
                }
                count(work.good as u64);
            }
            if let Some(end) = work.end {
                let _ = stream.write_all(end.as_bytes()).await;
                count(1);
                return;
            }
            if work.good < http::BATCH || bytes == 0 {
                break;
            }
        }
    }
}

/// Returns never: the end is a signal's.
pub async fn serve(name: &str, workers: usize, port: u64) {
    let Ok(port) = u16::try_from(port) else {
        eprintln!("{port} is no port: those are 1 to 65535, and 0 is one that is free");
        std::process::exit(2);
    };
    SHARED.store(workers > 1, Relaxed);
    IS_ECHO.store(name == "echo", Relaxed);
    raise_descriptors();
    handle_signals();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap_or_else(|why| {
        eprintln!("tokio-bench: {why}");
        std::process::exit(1)
    });
    println!("{name}_listens {}", listener.local_addr().expect("its address").port());
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        if name == "echo" {
            tokio::spawn(echo_client(stream));
        } else {
            tokio::spawn(http_client(stream));
        }
    }
}
