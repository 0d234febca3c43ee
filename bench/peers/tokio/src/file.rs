// SPDX-License-Identifier: MIT

//! Random reads of 4 KiB from a file that is in memory. Tokio's own File has no read at an offset, and takes a seek, a lock and a copy
//! for each; a read on the blocking pool is what its users write instead, and is faster.

use crate::Bench;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use tokio::task::spawn_blocking;

const PAGE_BYTES: usize = 4096;

fn pages_of(reads: u64) -> u64 {
    if reads < 10_000 { 256 } else { 65_536 }
}

fn next_page(state: &mut u64, pages: u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*state >> 33) % pages
}

/// Without a name, and in memory: it has just been written.
fn file_make(pages: u64) -> File {
    let name = format!("/tmp/weft-bench-tokio-{}", std::process::id());
    let mut file = File::options().read(true).write(true).create_new(true).open(&name).expect("a file in /tmp");
    std::fs::remove_file(&name).expect("to remove it");
    let mut page = [0u8; PAGE_BYTES];
    for i in 0..pages {
        page[..8].copy_from_slice(&i.to_ne_bytes());
        file.write_all(&page).expect("to write it");
    }
    file
}

fn sum_of(readers: u64, each: u64, pages: u64) -> u64 {
    let mut sum = 0;
    for seed in 0..readers {
        let mut state = seed;
        for _ in 0..each {
            sum += next_page(&mut state, pages);
        }
    }
    sum
}

/// The buffer goes to the job and comes back.
async fn reader(file: Arc<File>, seed: u64, n: u64, pages: u64) -> u64 {
    let mut page = Box::new([0u8; PAGE_BYTES]);
    let (mut state, mut sum) = (seed, 0);
    for _ in 0..n {
        let at = next_page(&mut state, pages) * PAGE_BYTES as u64;
        let file = file.clone();
        page = spawn_blocking(move || {
            file.read_exact_at(&mut page[..], at).expect("to read it");
            page
        })
        .await
        .unwrap();
        sum += u64::from_ne_bytes(page[..8].try_into().unwrap());
    }
    sum
}

async fn reads(b: Bench, readers: u64) {
    let pages = pages_of(b.n);
    let each = b.n / readers;
    let file = Arc::new(file_make(pages));
    b.rounds(each * readers, sum_of(readers, each, pages), || {
        let file = file.clone();
        async move {
            let handles: Vec<_> = (0..readers).map(|seed| tokio::spawn(reader(file.clone(), seed, each, pages))).collect();
            let mut sum = 0;
            for handle in handles {
                sum += handle.await.unwrap();
            }
            sum
        }
    })
    .await
}

pub async fn one(b: Bench) {
    reads(b, 1).await
}

pub async fn eight(b: Bench) {
    reads(b, 8).await
}

pub async fn sixty_four(b: Bench) {
    reads(b, 64).await
}
