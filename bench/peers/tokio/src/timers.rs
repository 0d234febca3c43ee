// SPDX-License-Identifier: MIT
//! Cases about time.

use crate::Bench;
use std::future::{poll_fn, Future};
use std::pin::{pin, Pin};
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::{sleep, Sleep};

const CHURNS: u64 = 500_000;

/// Polls once, which links it; true if it has not expired.
async fn link(mut timer: Pin<&mut Sleep>) -> bool {
    poll_fn(|context| Poll::Ready(timer.as_mut().poll(context).is_pending())).await
}

/// Arms and cancels 500,000 timers while N others are live.
pub async fn timer_churn(b: Bench) {
    let mut others = Vec::with_capacity(b.n as usize);
    for i in 0..b.n {
        let mut other = Box::pin(sleep(Duration::from_millis(60_000 + i * 60 % 3_600_000)));
        link(other.as_mut()).await;
        others.push(other);
    }
    b.rounds(CHURNS, CHURNS, || async {
        let mut pending = 0;
        for i in 0..CHURNS {
            let timer = pin!(sleep(Duration::from_millis(3_600_000 + i % 1000)));
            pending += u64::from(link(timer).await);
        }
        pending
    })
    .await
}

pub async fn timer_many(b: Bench) {
    b.rounds(b.n, b.n, || async move {
        let handles: Vec<JoinHandle<()>> =
            (0..b.n).map(|i| tokio::spawn(sleep(Duration::from_millis(i % 100)))).collect();
        let mut joined = 0;
        for handle in handles {
            handle.await.unwrap();
            joined += 1;
        }
        joined
    })
    .await
}

/// The median lateness of N sleeps of 1 ms, in nanoseconds, in each round.
pub async fn sleep_error(b: Bench) {
    const NAP: Duration = Duration::from_millis(1);
    for _ in 0..5 {
        let mut late = Vec::with_capacity(b.n as usize);
        for _ in 0..b.n {
            let start = Instant::now();
            sleep(NAP).await;
            late.push(start.elapsed().saturating_sub(NAP).as_nanos());
        }
        late.sort_unstable();
        println!("{} {}", b.name, late[late.len() / 2]);
    }
    b.checksum(b.n);
}
