// SPDX-License-Identifier: MIT
//! Cases about tasks that wait for one another. There is no mpmc: Tokio has no such channel, and a receiver behind a mutex would
//! measure something that nobody should write.

use crate::spawn::Latch;
use crate::{sum_below, Bench};
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot, Mutex, Notify};
use tokio::task::JoinHandle;

pub async fn ping_pong(b: Bench) {
    b.rounds(b.n, sum_below(b.n), || async move {
        let latch = Latch::leaked(b.n);
        let sum: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        for i in 0..b.n {
            tokio::spawn(async move {
                let (ping, pinged) = oneshot::channel();
                let (pong, ponged) = oneshot::channel();
                tokio::spawn(async move {
                    let value: u64 = pinged.await.unwrap();
                    pong.send(value).unwrap();
                });
                ping.send(i).unwrap();
                sum.fetch_add(ponged.await.unwrap(), Ordering::Relaxed);
                latch.count_down();
            });
        }
        latch.wait().await;
        sum.load(Ordering::Relaxed)
    })
    .await
}

/// Nanoseconds per hand-over, of which a round has two.
pub async fn switch(b: Bench) {
    b.rounds(2 * b.n, 2 * b.n, || async move {
        let a: &'static Notify = Box::leak(Box::new(Notify::new()));
        let z: &'static Notify = Box::leak(Box::new(Notify::new()));
        let second = tokio::spawn(async move {
            let mut count = 0;
            for _ in 0..b.n {
                a.notified().await;
                count += 1;
                z.notify_one();
            }
            count
        });
        let first = tokio::spawn(async move {
            let mut count = 0;
            for _ in 0..b.n {
                a.notify_one();
                z.notified().await;
                count += 1;
            }
            count
        });
        first.await.unwrap() + second.await.unwrap()
    })
    .await
}

/// N messages in all through a bounded channel of 1,024.
async fn messages(b: Bench, producers: u64) {
    let each = b.n / producers;
    b.rounds(each * producers, producers * sum_below(each), || async move {
        let (send, mut receive) = mpsc::channel::<u64>(1024);
        for _ in 0..producers {
            let send = send.clone();
            tokio::spawn(async move {
                for i in 0..each {
                    send.send(i).await.unwrap();
                }
            });
        }
        drop(send);
        let receiver = tokio::spawn(async move {
            let mut sum = 0;
            while let Some(value) = receive.recv().await {
                sum += value;
            }
            sum
        });
        receiver.await.unwrap()
    })
    .await
}

pub async fn mpsc1(b: Bench) {
    messages(b, 1).await
}

pub async fn mpsc4(b: Bench) {
    messages(b, 4).await
}

/// N tasks that lock, add one and unlock 10,000 times each.
pub async fn mutex(b: Bench) {
    let ops = b.n * 10_000;
    b.rounds(ops, ops, || async move {
        let counter: &'static Mutex<u64> = Box::leak(Box::new(Mutex::new(0)));
        let handles: Vec<JoinHandle<()>> = (0..b.n)
            .map(|_| {
                tokio::spawn(async move {
                    for _ in 0..10_000 {
                        *counter.lock().await += 1;
                    }
                })
            })
            .collect();
        for handle in handles {
            handle.await.unwrap();
        }
        let count = *counter.lock().await;
        count
    })
    .await
}
