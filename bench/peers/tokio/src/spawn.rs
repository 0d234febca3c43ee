// SPDX-License-Identifier: MIT
//! Cases about making tasks, ending them, and giving the thread back.

use crate::{memory, sum_below, Bench};
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, Notify};
use tokio::task::{spawn_blocking, yield_now, JoinHandle};

/// Counts down; the last one tells.
pub struct Latch {
    left: AtomicU64,
    done: Notify,
}

impl Latch {
    pub fn leaked(count: u64) -> &'static Latch {
        Box::leak(Box::new(Latch { left: AtomicU64::new(count), done: Notify::new() }))
    }

    pub fn count_down(&self) {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.done.notify_one();
        }
    }

    /// Waits for the last one; returns how many have not counted, which is none.
    pub async fn wait(&self) -> u64 {
        self.done.notified().await;
        self.left.load(Ordering::Relaxed)
    }
}

pub async fn spawn(b: Bench) {
    b.rounds(b.n, b.n, || async move {
        let latch = Latch::leaked(b.n);
        for _ in 0..b.n {
            tokio::spawn(async move { latch.count_down() });
        }
        b.n - latch.wait().await
    })
    .await
}

pub async fn spawn_join(b: Bench) {
    b.rounds(b.n, sum_below(b.n), || async move {
        let mut sum = 0;
        for i in 0..b.n {
            sum += tokio::spawn(async move { i }).await.unwrap();
        }
        sum
    })
    .await
}

pub async fn join_all(b: Bench) {
    b.rounds(b.n, sum_below(b.n), || async move {
        let handles: Vec<JoinHandle<u64>> = (0..b.n).map(|i| tokio::spawn(async move { i })).collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    })
    .await
}

/// Milliseconds a round, then the process's peak of resident memory in MB.
pub async fn tasks100k(b: Bench) {
    for _ in 0..5 {
        let start = Instant::now();
        let handles: Vec<JoinHandle<()>> = (0..b.n).map(|_| tokio::spawn(async {})).collect();
        let mut joined = 0;
        for handle in handles {
            handle.await.unwrap();
            joined += 1;
        }
        let time = start.elapsed();
        b.verify(joined, b.n);
        println!("{} {:.3} ms", b.name, time.as_secs_f64() * 1e3);
    }
    println!("{}_rss {:.1}", b.name, memory::peak_bytes() as f64 / 1e6);
    b.checksum(b.n);
}

/// Spawned by a thread that is no worker; the time is that thread's.
pub async fn spawn_remote(b: Bench) {
    b.timed_rounds(b.n, b.n, || async move {
        let runtime = tokio::runtime::Handle::current();
        let (tell, told) = oneshot::channel();
        std::thread::spawn(move || {
            let left: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(b.n)));
            let me = std::thread::current();
            let me: &'static std::thread::Thread = Box::leak(Box::new(me));
            let start = Instant::now();
            for _ in 0..b.n {
                runtime.spawn(async move {
                    if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                        me.unpark();
                    }
                });
            }
            while left.load(Ordering::Acquire) != 0 {
                std::thread::park();
            }
            let _ = tell.send((start.elapsed(), b.n - left.load(Ordering::Relaxed)));
        });
        let told: (Duration, u64) = told.await.unwrap();
        told
    })
    .await
}

/// N tasks that yield a million times together.
pub async fn yielding(b: Bench) {
    let each = (1_000_000 / b.n.max(1)).max(1);
    let ops = each * b.n;
    b.rounds(ops, ops, || async move {
        let handles: Vec<JoinHandle<u64>> = (0..b.n)
            .map(|_| {
                tokio::spawn(async move {
                    let mut count = 0;
                    for _ in 0..each {
                        yield_now().await;
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    })
    .await
}

fn chain(left: u64, count: u64, done: oneshot::Sender<u64>) {
    tokio::spawn(async move {
        if left == 0 {
            let _ = done.send(count);
        } else {
            chain(left - 1, count + 1, done);
        }
    });
}

pub async fn chained(b: Bench) {
    b.rounds(b.n, b.n, || async move {
        let (tell, told) = oneshot::channel();
        chain(b.n, 0, tell);
        told.await.unwrap()
    })
    .await
}

fn node(number: u64, size: u64) -> impl Future<Output = u64> + Send {
    async move {
        let part = size / 10;
        let children: [JoinHandle<u64>; 10] = std::array::from_fn(|i| {
            let first = number + i as u64 * part;
            if part == 1 {
                tokio::spawn(async move { first })
            } else {
                tokio::spawn(node(first, part))
            }
        });
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    }
}

/// N leaves, a power of ten; nanoseconds per task, the inner ones counted.
pub async fn skynet(b: Bench) {
    let tasks = (10 * b.n - 1) / 9;
    b.rounds(tasks, sum_below(b.n), || async move { tokio::spawn(node(0, b.n)).await.unwrap() }).await
}

fn fib_task(n: u64) -> impl Future<Output = u64> + Send {
    async move {
        if n < 2 {
            return n;
        }
        let left = tokio::spawn(fib_task(n - 1));
        let right = Box::pin(fib_task(n - 2)).await;
        left.await.unwrap() + right
    }
}

fn fib_plain(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Nanoseconds per call, the inline ones counted.
pub async fn fib(b: Bench) {
    let calls = 2 * fib_plain(b.n + 1) - 1;
    b.rounds(calls, fib_plain(b.n), || async move { tokio::spawn(fib_task(b.n)).await.unwrap() }).await
}

async fn blocking(b: Bench, awaiters: u64) {
    let each = b.n / awaiters;
    b.rounds(each * awaiters, awaiters * sum_below(each), || async move {
        let handles: Vec<JoinHandle<u64>> = (0..awaiters)
            .map(|_| {
                tokio::spawn(async move {
                    let mut sum = 0;
                    for i in 0..each {
                        sum += spawn_blocking(move || i).await.unwrap();
                    }
                    sum
                })
            })
            .collect();
        let mut sum = 0;
        for handle in handles {
            sum += handle.await.unwrap();
        }
        sum
    })
    .await
}

pub async fn blocking1(b: Bench) {
    blocking(b, 1).await
}

pub async fn blocking16(b: Bench) {
    blocking(b, 16).await
}
