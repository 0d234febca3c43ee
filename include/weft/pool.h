/* SPDX-License-Identifier: MIT
 *
 * pool - tasks in the program's own storage: no heap, and a bound on how many there are.
 *
 *     static char memory[WEFT_POOL_BYTES(64, session)];                    room for 64 tasks of weft_async(session)
 *     static weft_pool pool;
 *     int r = weft_pool_init(&pool, memory, sizeof(memory), &(weft_pool_opts){.frame_bytes = sizeof(struct session)});
 *     weft_task *t = weft_spawn_as((.pool = &pool), session, .stream = s); NULL once 64 live; never from the heap
 *
 * A pool's tasks are like all others: they have ids, are cancelled and waited for by weft_rt_stop, and may be joined
 * after it. A fiber's frame lies in the pool too; its stack does not.
 */
#ifndef WEFT_POOL_H
#define WEFT_POOL_H

#include <weft/fiber.h>
#include <weft/task.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lies where the program likes, and stays there until weft_pool_done has answered 0. */
struct weft_pool {
    uint64_t weft__private[16];
};

typedef struct weft_pool_opts {
    weft_rt *rt;        /* whose tasks they will be; NULL: the current one */
    size_t frame_bytes; /* of the largest frame: sizeof(struct fn); up to 65,328. 0: 128, enough for every weft_go */
} weft_pool_opts;

/* Make a pool of `memory`: as many blocks of one size as it has room for. Blocks begin at a multiple of 64 KiB: what lies
 * before the first is not used.
 * Pins *pool and memory until weft_pool_done has answered 0. Borrows opts, which may be NULL. Context: any thread; the
 * runtime is not being stopped.
 * Returns 0; -EINVAL for a NULL, or a frame that is too large; -ENOSPC if there is no room for a single task; -ENXIO
 * without a runtime; -ENOMEM if the runtime's list of chunks cannot grow (every 1,024th; a new one has room); -ECHILD if
 * it is the runtime of a fork's parent. */
WEFT_API int weft_pool_init(weft_pool *pool, void *memory, size_t bytes, const weft_pool_opts *opts);

/* Give pool and memory back to the program, before or after weft_rt_stop; until then they keep what little is left of the
 * runtime after its stop. Context: any thread, while nobody spawns there. Blocks: no, but for a look through the tasks
 * that is under way.
 * Returns 0; -EBUSY while a task lives or a handle, reference or waker of one is held; -EINVAL for no pool;
 * -ECHILD in the child of a fork. */
WEFT_API int weft_pool_done(weft_pool *pool);

/* How many tasks have room, and how many have one now. */
WEFT_API size_t weft_pool_capacity(const weft_pool *pool);
WEFT_API size_t weft_pool_used(const weft_pool *pool);

/* Bytes that surely hold `count` tasks of weft_spawn(fn), or of weft_go, wherever they begin. */
#define WEFT_POOL_BYTES(count, fn) (WEFT__POOL_BYTES(count, sizeof(struct fn)))
#define WEFT_POOL_GO_BYTES(count)  (WEFT__POOL_BYTES(count, 128))

/* ---- private: how blocks lie --------------------------------------------------------------------------------------
 *
 * A chunk begins at a multiple of 64 KiB with a header of 64, so that a task's runtime is found from its address. A block
 * has the task's header, perhaps a pointer to a large frame, the frame, and 64 for what a spawn's options need. */
#define WEFT__POOL_CHUNK 65536u
#define WEFT__POOL_BLOCK(frame)                                                                    \
    (64u + ((frame) > 1024u ? 16u : 0u) + ((frame) + 15u) / 16u * 16u + 64u)
#define WEFT__POOL_PER_CHUNK(frame) ((WEFT__POOL_CHUNK - 64u) / WEFT__POOL_BLOCK(frame))
#define WEFT__POOL_REST(count, frame)                                                              \
    ((count) % WEFT__POOL_PER_CHUNK(frame) * WEFT__POOL_BLOCK(frame) + 64u)
#define WEFT__POOL_BYTES(count, frame)                                                             \
    (WEFT__POOL_CHUNK - 1u + (count) / WEFT__POOL_PER_CHUNK(frame) * WEFT__POOL_CHUNK +            \
     WEFT__POOL_REST(count, frame))

#ifdef __cplusplus
}
#endif

#endif
