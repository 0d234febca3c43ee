// SPDX-License-Identifier: MIT
//! Cases about resident memory. One value a process: a second round would live in what the first one left.

use crate::Bench;
use std::fs::read_to_string;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

const PAGE_BYTES: u64 = 4096;

fn resident_bytes() -> u64 {
    let statm = read_to_string("/proc/self/statm").expect("statm");
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("resident pages") * PAGE_BYTES
}

pub fn peak_bytes() -> u64 {
    let status = read_to_string("/proc/self/status").expect("status");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("kilobytes") * 1024
}

/// Spawns N tasks of `wait`, lets all of them start, and prints the resident bytes of each.
async fn bytes_each<W, F>(b: Bench, wait: W)
where
    W: Fn() -> F + Copy + Send + 'static,
    // made inside the task: a future that is moved into another one is kept there twice
    F: Future<Output = ()> + Send,
{
    static STARTED: AtomicU64 = AtomicU64::new(0); // not captured: that would weigh, too
    let before = resident_bytes();
    for _ in 0..b.n {
        tokio::spawn(async move {
            STARTED.fetch_add(1, Ordering::Relaxed);
            wait().await
        });
    }
    while STARTED.load(Ordering::Relaxed) < b.n {
        sleep(Duration::from_millis(5)).await;
    }
    sleep(Duration::from_millis(50)).await; // the last ones that counted may not be waiting yet
    println!("{} {:.1}", b.name, resident_bytes().saturating_sub(before) as f64 / b.n as f64);
    b.checksum(STARTED.load(Ordering::Relaxed));
}

pub async fn mem_sleep(b: Bench) {
    bytes_each(b, || sleep(Duration::from_secs(3600))).await
}

pub async fn mem_wait(b: Bench) {
    static GATE: Notify = Notify::const_new();
    bytes_each(b, || GATE.notified()).await
}
