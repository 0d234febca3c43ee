// SPDX-License-Identifier: MIT
//
//! tokio-bench CASE [WORKERS] [N] - the cases of docs/BENCHMARKS.md, written for Tokio's advantage.
//!
//! Five rounds, one line each: `CASE VALUE`, nanoseconds per operation unless the case says otherwise. WORKERS 0 is the
//! current-thread runtime. The root of a case is a spawned task, so that it runs on a worker. What lives as long as a round is
//! leaked instead of counted (`Arc`), since a shared counter would be a cost of the benchmark, not of Tokio. Where another way of
//! writing a case proves faster on a quiet machine, it belongs here instead.

mod file;
mod http;
mod memory;
mod net;
mod spawn;
mod sync;
mod timers;

use std::future::Future;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: u32 = 5;
const NO_SUCH_CASE: i32 = 3;
const SERVERS: &[&str] = &["echo", "http"]; // they end by a signal

/// One case as it was asked for.
#[derive(Clone, Copy)]
pub struct Bench {
    pub name: &'static str,
    pub n: u64,
}

impl Bench {
    /// Five rounds of `body`, which does `ops` operations and returns its checksum.
    pub async fn rounds<F, B>(self, ops: u64, expected: u64, mut body: F)
    where
        F: FnMut() -> B,
        B: Future<Output = u64>,
    {
        for _ in 0..ROUNDS {
            let start = Instant::now();
            let sum = body().await;
            self.round(start.elapsed(), ops, sum, expected);
        }
        self.checksum(expected);
    }

    /// The same for a body that keeps the time itself.
    pub async fn timed_rounds<F, B>(self, ops: u64, expected: u64, mut body: F)
    where
        F: FnMut() -> B,
        B: Future<Output = (Duration, u64)>,
    {
        for _ in 0..ROUNDS {
            let (time, sum) = body().await;
            self.round(time, ops, sum, expected);
        }
        self.checksum(expected);
    }

    fn round(self, time: Duration, ops: u64, sum: u64, expected: u64) {
        self.verify(sum, expected);
        println!("{} {:.2}", self.name, time.as_nanos() as f64 / ops as f64);
    }

    pub fn verify(self, sum: u64, expected: u64) {
        if sum != expected {
            eprintln!("{}: the checksum is {sum} instead of {expected}", self.name);
            std::process::exit(1);
        }
    }

    pub fn checksum(self, sum: u64) {
        eprintln!("checksum {} {sum}", self.name);
    }
}

/// 0 + 1 + ... + (n - 1)
pub fn sum_below(n: u64) -> u64 {
    n * n.saturating_sub(1) / 2
}

macro_rules! cases {
    ($($name:literal $n:literal $path:path,)*) => {
        const NAMES: &[&str] = &[$($name),*];

        async fn run(name: &str, n: Option<u64>) {
            match name {
                $($name => Box::pin($path(Bench { name: $name, n: n.unwrap_or($n) })).await,)*
                _ => unreachable!(),
            }
        }
    };
}

cases! {
    "spawn" 1_000_000 spawn::spawn,
    "spawn_join" 300_000 spawn::spawn_join,
    "join_all" 100_000 spawn::join_all,
    "spawn_remote" 300_000 spawn::spawn_remote,
    "yield" 1_000 spawn::yielding,
    "ping_pong" 100_000 sync::ping_pong,
    "ping_pong_chan" 100_000 sync::ping_pong,
    "switch" 500_000 sync::switch,
    "chained" 300_000 spawn::chained,
    "skynet" 1_000_000 spawn::skynet,
    "fib" 30 spawn::fib,
    "mpsc" 2_000_000 sync::mpsc1,
    "mpsc4" 2_000_000 sync::mpsc4,
    "mutex" 100 sync::mutex,
    "timer_churn" 0 timers::timer_churn,
    "timer_many" 1_000_000 timers::timer_many,
    "sleep_error" 300 timers::sleep_error,
    "mem_sleep" 1_000_000 memory::mem_sleep,
    "mem_wait" 1_000_000 memory::mem_wait,
    "blocking" 30_000 spawn::blocking1,
    "blocking16" 30_000 spawn::blocking16,
    "tasks100k" 100_000 spawn::tasks100k,
    "file_read" 200_000 file::one,
    "file_read8" 200_000 file::eight,
    "file_read64" 200_000 file::sixty_four,
}

fn runtime(workers: usize) -> Runtime {
    let mut builder = if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
    if workers > 0 {
        builder.worker_threads(workers);
    }
    builder.enable_all().build().expect("a runtime")
}

fn number(argument: Option<&String>) -> Option<u64> {
    argument.map(|text| {
        text.parse().unwrap_or_else(|_| {
            eprintln!("tokio-bench: {text} is not a number");
            std::process::exit(2)
        })
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let case = arguments.first().map_or("--list", String::as_str).to_owned();
    if case == "--list" {
        NAMES.iter().for_each(|name| println!("{name}"));
        return;
    }
    if case == "--servers" {
        SERVERS.iter().for_each(|name| println!("{name}"));
        return;
    }
    if !NAMES.contains(&case.as_str()) && !SERVERS.contains(&case.as_str()) {
        eprintln!("tokio-bench: there is no case {case}");
        std::process::exit(NO_SUCH_CASE);
    }
    let workers = number(arguments.get(1)).unwrap_or(2) as usize;
    let n = number(arguments.get(2));
    let rt = runtime(workers);
    rt.block_on(async move {
        tokio::spawn(async move {
            if SERVERS.contains(&case.as_str()) {
                net::serve(&case, workers, n.unwrap_or(7000)).await
            } else {
                run(&case, n).await
            }
        })
        .await
        .expect("the root task")
    });
    std::process::exit(0); // a million sleepers need not be taken down one by one
}
