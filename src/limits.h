/* SPDX-License-Identifier: MIT
 *
 * limits - every bound of the library, with what breaks if it is doubled.
 *
 * Tests at tiny capacity (the model checker's) define a bound before they include this file.
 */

/* gcc's own <limits.h> looks for the system's with #include_next, and finds this file on the way: pass it on, each time. Without it gcc 12 knows no
 * SSIZE_MAX and no PATH_MAX. */
#include_next <limits.h>

#ifndef WEFT_LIMITS_H
#define WEFT_LIMITS_H

/* Entries of a worker's ring; a power of two. Doubled: a stuck worker holds up more tasks until the monitor sees it, and the ring (2 KiB) no longer
 * shares L1 with what it runs. */
#ifndef WEFT__RUNQ_CAP
#define WEFT__RUNQ_CAP 256
#endif

/* Tasks that a worker takes from a long ring into its hand, beside the one that it runs; with `next` and what guards them one cache line. Doubled: two lines, and a
 * thief finds as many fewer. */
#ifndef WEFT__HAND
#define WEFT__HAND 6
#endif

/* And how long that ring is at least. Halved: a burst of long tasks, of which each worker should have its share, stays with one by 6 of 32; doubled: shorter rings pay
 * a read-modify-write for each task. */
#ifndef WEFT__HAND_LEAST
#define WEFT__HAND_LEAST 64
#endif

/* Tasks of one overflow array; with its header 1 KiB. Doubled: a thief that takes an array whole takes twice the work from its neighbour. */
#ifndef WEFT__OVERFLOW_BATCH
#define WEFT__OVERFLOW_BATCH 126
#endif

/* Overflow arrays that a thief takes at once, at most; it walks them under their owner's lock. Doubled: the lock is held for twice as long, 1 to 4 us, and a
 * thief takes more from its neighbour than it runs in 50 us; halved: it comes back twice as often when tasks lie there by the thousand. */
#ifndef WEFT__OVERFLOW_HAUL
#define WEFT__OVERFLOW_HAUL 32
#endif

/* Free stacks that a thread keeps for its next fibers. Doubled: twice as many pages lie idle at each worker; halved: fibers that come and go by the dozen take
 * the pool's lock more often. */
#ifndef WEFT__STACK_MAGAZINE
#define WEFT__STACK_MAGAZINE 16
#endif

/* Foreign frees gathered before they go home. Doubled: more memory sits in threads that will not use it; halved: twice the CASes. */
#ifndef WEFT__SLAB_RETURN_BATCH
#define WEFT__SLAB_RETURN_BATCH 32
#endif

/* Outgoing batches a thread gathers at once, by home and size class; a power of two. One is not enough: a thread that frees what two others
 * made, in turns, would pay a CAS per block. Doubled: twice the memory sits in threads that will not use it, and a flush looks at twice as many. */
#ifndef WEFT__SLAB_BINS
#define WEFT__SLAB_BINS 8
#endif

/* Batches borrowed from a peer at once. Doubled: a borrower keeps twice as many blocks from a peer that may want them; halved: it comes back,
 * with two read-modify-writes on the peer's line, twice as often. */
#ifndef WEFT__SLAB_BORROW
#define WEFT__SLAB_BORROW 32
#endif

/* The largest block: a header of 64, a frame of 1 KiB, a tail of 64; what is larger is boxed. Doubled: twice the classes, and 29 blocks a chunk. */
#ifndef WEFT__SLAB_BLOCK_MAX
#define WEFT__SLAB_BLOCK_MAX 1152
#endif

/* A frame over this many bytes lies on the heap (or further on in the block of a pool), and the block holds its address. Doubled: twice the classes, most of them
 * unused. */
#define WEFT__FRAME_MAX 1024

/* Bytes and alignment of a chunk. Cannot be doubled: an id has 12 bits for a place in the chunk, counted in 16 bytes. Halved: the last block's
 * rest is a larger part of it, and the directory holds half as much memory. */
#ifndef WEFT__SLAB_CHUNK_BYTES
#define WEFT__SLAB_CHUNK_BYTES 65536
#endif

/* Largest span asked of the source, and its alignment: one huge page. Doubled: a worker's last span wastes twice as much. */
#ifndef WEFT__SLAB_SPAN_MAX
#define WEFT__SLAB_SPAN_MAX (2 * 1024 * 1024)
#endif

/* The directory: 2^10 leaves of 2^10 chunks, 64 GiB. Cannot be doubled: an id has 20 bits for the chunk. */
#ifndef WEFT__SLAB_TOP_BITS
#define WEFT__SLAB_TOP_BITS 10
#endif
#ifndef WEFT__SLAB_LEAF_BITS
#define WEFT__SLAB_LEAF_BITS 10
#endif

/* Blocks that wait in a debug build before they are freed, for each worker: a handle used twice is caught as long. Doubled: twice the memory. */
#ifndef WEFT__SPENT_MAX
#define WEFT__SPENT_MAX 128
#endif

/* Spawn sites of a runtime whose failures are counted apart. Doubled: a program full of tasks that fail unread keeps 10 KiB more, and prints twice
 * as many lines at most. */
#ifndef WEFT__UNREAD_SITES_MAX
#define WEFT__UNREAD_SITES_MAX 64
#endif

/* Waiters woken before the waitlist's lock is let go. Doubled: a cancelled waiter of a list of a million waits twice as long for the lock. */
#ifndef WEFT__WAKE_BATCH
#define WEFT__WAKE_BATCH 64
#endif

/* How long one who waits for a mutex is overtaken before it is not any more. Doubled: the worst wait for a lock that others use without pause is twice as long;
 * halved: a lock that is held for so long changes hands by a switch each time. */
#ifndef WEFT__MUTEX_PATIENCE_NS
#define WEFT__MUTEX_PATIENCE_NS 1000000
#endif

/* Timers of one slot that are looked at for the earliest deadline; of level 0, all. Doubled: a worker that goes to sleep looks at twice as many; halved: it
 * wakes up early more often, once for each slot that has more. */
#ifndef WEFT__WHEEL_SCAN
#define WEFT__WHEEL_SCAN 64
#endif

/* Timers that one turn of a wheel fires at most; it moves four times as many. Doubled: a cancel from another worker waits twice as long for the lock (some
 * 10 us), and so do tasks behind a burst of timers. */
#ifndef WEFT__WHEEL_BATCH
#define WEFT__WHEEL_BATCH 128
#endif

/* Lists in which watchers hang, by the address of the task they watch. Doubled: 256 KiB more of memory where there are many watched tasks at once; halved: the
 * end of each walks twice as many watchers of others. */
#ifndef WEFT__WATCH_BUCKETS
#define WEFT__WATCH_BUCKETS 4096
#endif

/* Names that are asked for at once in a runtime, each on a thread. Doubled: twice the threads wait where no name server answers; halved: names that answer wait longer
 * behind those that do not. */
#ifndef WEFT__NAMES_THREADS
#define WEFT__NAMES_THREADS 16
#endif

/* CPUs an affinity mask can name; what the largest x86-64 kernel can have. Doubled: each mask on a stack is 2 KiB instead of 1. */
#define WEFT__CPUS_MAX 8192

/* Stacks carved from one mapping. Doubled: the first fiber of a pool reserves 40 MiB of addresses instead of 20; halved: twice the mappings to search when one overflows. */
#ifndef WEFT__STACK_CHUNK_SLOTS
#define WEFT__STACK_CHUNK_SLOTS 64
#endif

/* The least and the largest stack that a task can ask for: 16 KiB and 4 GiB. The largest doubled: a size that somebody mistyped is taken for a wish. */
#define WEFT__STACK_MIN_BITS 14
#define WEFT__STACK_MAX_BITS 32

/* Addresses that one mapping of stacks of an unusual size takes, unless one stack is larger. Doubled: twice the addresses for the first of a size; halved: twice the
 * mappings of those who want many. */
#define WEFT__STACK_MAP_BYTES ((size_t)16 * 1024 * 1024)

/* Bytes of guard below a stack where guards cost no mapping. Doubled: a frame that skips 64 KiB without touching it is caught too, for as much address space. */
#define WEFT__STACK_GUARD_BYTES (64 * 1024)

/* Bytes of a block of the stacks' directory, never given back. Doubled: a process with one fiber keeps four pages for it instead of two. */
#ifndef WEFT__STACKDIR_BLOCK_BYTES
#define WEFT__STACKDIR_BLOCK_BYTES 8192
#endif

/* Stacks taken out of a pool at once while their pages are given back. Doubled: twice as many are missing for a moment, and a burst then maps new ones. */
#define WEFT__STACK_TRIM_BATCH 16

/* Free stacks of each size that keep their pages in a runtime that sleeps. Doubled: twice the memory, some 100 KiB for the usual size; halved: the first burst after
 * a sleep faults twice as often. */
#define WEFT__STACK_KEEP 16

/* The largest text file the library reads whole. What it reads is a table of mounts: doubled, a hostile one costs twice the memory. */
#define WEFT__SLURP_BYTES_MAX (16 * 1024 * 1024)

/* Of a directory, how much is fetched at once: some 800 entries. Doubled: half the calls, and twice the memory of each open one. */
#define WEFT__DIR_PAGE_BYTES (32 * 1024)

/* File operations that are under way at once on a shard's ring; a power of two. Beyond it they go to the pool. Doubled: 24 KiB more for each shard that uses files. */
#ifndef WEFT__FILES_DEPTH
#define WEFT__FILES_DEPTH 256
#endif

/* Answers of a ring that are fetched at once. Doubled: 1 KiB more on the stack of each look. */
#define WEFT__FILES_BATCH 64

/* What a write may copy on the spot, while the worker waits; a longer one goes to another thread. Doubled: other tasks of the worker wait twice as long, some 20 us;
 * halved: more writes pay for the way to another thread and back. */
#define WEFT__FILE_INLINE_BYTES ((size_t)128 * 1024)

/* Threads of a blocking pool that can be asked for; what Linux gives a process by default. Doubled: a number that somebody mistyped is taken for a wish. */
#define WEFT__BLOCKING_THREADS_MAX 32768

/* Events that one turn of a driver brings at most. Doubled: a burst of them fills half of the ring again, and timers behind it wait as much longer; halved: a busy
 * server asks the kernel twice as often. */
#ifndef WEFT__EVENTS_MAX
#define WEFT__EVENTS_MAX 128
#endif

/* So many of epoll's, which are cheap to ask for. Of thousands of connections each is in no cache when its event is told, and its request brings some 10 KiB into it, the kernel's
 * counted: doubled, what was there when it was told is gone again when its task runs (0.1 us a request, with 8,000); halved: a twentieth of a request more for the wait. */
#define WEFT__EPOLL_EVENTS 32

/* And of io_uring's, of which a request has two, while there is a flood of them (driver/uring.h). A call hands in what they ask for, too, so it wants to be about many: halved, 0.1 us
 * a request more; doubled: as above. */
#define WEFT__URING_FLOOD_EVENTS 64

/* More answers than these at once are a flood: as many as there are buffers. Doubled: twice as many connections are fetched ahead, with buffers for half of them; a fifth of it: 1,000 connections go by calls, which is no cheaper.
 * Debug builds have theirs sooner, so that their tests are about it. */
#ifndef WEFT__URING_FLOOD
#if defined(WEFT_DEBUG)
#define WEFT__URING_FLOOD 16
#else
#define WEFT__URING_FLOOD WEFT__URING_BUFFERS
#endif
#endif

/* Such a flood is over when so often in a row there was little. Doubled: connections of a load that has gone cost a call more a turn for longer; halved: a load that comes by waves makes each ask
 * anew in each. */
#define WEFT__URING_FLOOD_LOOKS 64

/* Events that it brings though the ring is full, each of which may then push an older task out of it. Doubled: where tasks that yield fill the ring, half of them
 * spill twice as often; halved: those that wait for an fd there wait twice as long. */
#define WEFT__EVENTS_LEAST 16

/* A port on io_uring. Requests that are handed over at once; answers that have a place (the kernel keeps the rest, at a price).
 * Doubled: 16 KiB and 64 KiB more for each port. */
#define WEFT__URING_REQUESTS 256
#define WEFT__URING_ANSWERS  4096

/* A send that may be made together with others. Doubled: twice as much is copied within one call, before anybody else has a turn; halved: more sends are calls. */
#define WEFT__URING_SEND_BYTES 16384

/* Its buffers for what sockets receive: how many, and of how many bytes. Doubled: up to 4 MiB more for each port; halved: bursts over many connections
 * find none more often, and are read by calls. */
#define WEFT__URING_BUFFERS      1024
#define WEFT__URING_BUFFER_BYTES 4096

/* What is fetched ahead for a socket that nobody reads, in bytes, and for a listener, in connections: then its request is taken back. Doubled: a slow reader holds twice as much,
 * and one of 64 of them takes all buffers; halved: what comes in long runs is asked for more often. */
#define WEFT__URING_UNREAD      32768
#define WEFT__URING_UNACCEPTED  64

/* And in buffers, of which the smallest message takes one. Doubled: half as many slow readers, of small messages, take all. */
#define WEFT__URING_UNREAD_BUFFERS 32

/* So soon is tried again what the kernel would not take, in ns. Doubled: who waits for such a request waits longer; halved: a kernel without memory is asked twice as often. */
#define WEFT__URING_AGAIN_NS INT64_C(1000000)

/* A socket that has handed in so many sends is given a place in its ring's table. Doubled: what a place saves, 0.05 to 0.14 us of a send, begins later; halved: connections of a few requests pay for two
 * more of the kernel, 0.5 us. */
#define WEFT__URING_PLACE_AFTER 16

/* Places: so many of a port's slots may have one, those above send by their number. Doubled: 64 KiB more of the kernel's memory for each worker. */
#define WEFT__URING_PLACES 8192

/* Buffers of one read or write that go to the kernel at once. Doubled: 1 KiB more on the stack of each such call; halved: long lists take more calls. */
#define WEFT__IOV_MAX 64

/* The piece by which a copy between two streams goes. Doubled: twice the memory of each copy under way; halved: twice the system calls. */
#define WEFT__COPY_BYTES 16384

/* The piece of a file that is sent at once, and what one splice moves: a pipe's usual room. Doubled: a poll takes twice as long, and more is lost where a splice is given up. */
#define WEFT__SPLICE_BYTES 65536

/* Where a read to the end begins; it doubles from there. Doubled: short answers cost twice the memory. */
#define WEFT__WHOLE_BYTES 4096

/* Workers per idle word: the rest of the word counts searchers. Cannot be doubled: the word has 64 bits. */
#define WEFT__IDLE_GROUP_WORKERS 56

/* Idle words of a runtime. Doubled: 448 workers instead of 224, and a waker of a large machine looks at twice as many lines. */
#define WEFT__IDLE_GROUPS_MAX 4

/* Workers and spares of one runtime. */
#define WEFT__WORKERS_MAX (WEFT__IDLE_GROUP_WORKERS * WEFT__IDLE_GROUPS_MAX)

/* Bytes of a runtime's name. Threads of the blocking pool have it in theirs with "-b" and up to four digits, and the kernel keeps 15 bytes: one more is cut there. */
#define WEFT__NAME_MAX 9

#endif
