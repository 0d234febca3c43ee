/* SPDX-License-Identifier: MIT
 *
 * file_ring - requests about files (file.h) as entries of a ring (ring.h).
 *
 *     int opcode = weft__file_opcode(&req);                  below 0: no ring does this one
 *     weft__file_fill(&req, room, sqe);                      room: weft__file_room_bytes of it
 *     ...                                                    its answer has come
 *     weft__file_take(&req, room);                           what the kernel wrote, as the request wants it
 *
 * As a system call would do it, with these differences, which are seen to here:
 *     - a ring that may try an open on the spot opens a FIFO without waiting for its other end (it adds
 *       O_NONBLOCK for the try), and may wait for a remote filesystem: opens are never tried on the spot
 *     - a write that is tried on the spot copies all of it there: a long one is not tried
 *     - an offset is not looked at by what has no place to seek to: such files are left to the pool
 *     - "where the file stands" is read and written without its lock, so that two writes at once go to one
 *       place: they are left to the pool, where the kernel takes the lock
 * Threads: any. Pins, until the answer: all that the request points at, and the room.
 */
#ifndef WEFT_SYS_FILE_RING_H
#define WEFT_SYS_FILE_RING_H

#include "sys/file.h"
#include "sys/ring.h"

/* Of the ring that does this request; -1: none does. */
int weft__file_opcode(const struct weft__file_req *req);

/* What the answer needs beside what the request points at. */
size_t weft__file_room_bytes(const struct weft__file_req *req);

/* The request has an opcode; the entry is zero. `user_data` is the caller's. */
void weft__file_fill(const struct weft__file_req *req, void *room, struct io_uring_sqe *sqe);

/* It was answered with success. */
void weft__file_take(const struct weft__file_req *req, const void *room);

/* Can a place in it be sought? A system call. Blocks: no. */
bool weft__file_seeks(int fd);

/* An entry's answer as the system call's. */
int64_t weft__file_answer(int32_t result);

/* Answers of a ring that are none of the file's: the request has not happened, and the system call may know more. */
bool weft__file_is_unanswered(int64_t answer);

#endif
