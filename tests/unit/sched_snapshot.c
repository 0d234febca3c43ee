/* SPDX-License-Identifier: MIT
 *
 * Snapshots: of a task that stays, of one that is gone, of one whose code is not there; and while
 * threads spawn, end and free tasks as fast as they can: what a walker keeps was one task.
 */
#include "sched/snapshot.h"

#include "base/fault.h"
#include "crew.h"
#include "sched/sched.h"
#include "sync/kin.h"
#include "sys/mem.h"
#include "sys/peek.h"
#include "test.h"

#include <errno.h>
#include <string.h>

static void skip_where_filtered(void)
{
    int there = 1;
    int r = weft__peek(&there, &there, sizeof(there));
    if (r == -ENOSYS || r == -EPERM) TEST_SKIP("process_vm_readv is filtered here");
}

/* ---- one task --------------------------------------------------------------------------------------- */

static _Atomic bool released;

static void until_released(void)
{
    while (!load_acquire(&released)) /* acquire: a flag of the test's */
        (void)weft_yield();
}

static void one(struct crew *crew)
{
    struct weft__snapshot s;
    (void)crew;
    store_relaxed(&released, false);
    weft_task *plain = weft_go(until_released);
    weft_task *named = weft_go_as((.name = "db"), until_released);
    uint64_t plain_state = weft__state_look(plain);
    ASSERT_OK(weft__snapshot_take(plain, plain_state, &s));
    ASSERT_STR(s.name, "until_released");
    ASSERT(strstr(s.file, "sched_snapshot.c"));
    ASSERT_EQ(s.id, weft_task_id(plain));
    ASSERT_PTR(s.site.poll, weft__go_poll);
    ASSERT_OK(weft__snapshot_take(named, weft__state_look(named), &s));
    ASSERT_STR(s.name, "db");
    ASSERT_EQ(s.site.kind, WEFT__FIBER);
    store_release(&released, true);
    ASSERT_OK(weft_join(named, NULL));
    ASSERT_OK(weft_wait(plain));
    ASSERT_EQ(weft__snapshot_take(plain, plain_state, &s), -ESRCH); /* complete */
    ASSERT_OK(weft_join(plain, NULL));
}

TEST(snapshot_of_a_task_that_stays_and_of_one_that_ended)
{
    skip_where_filtered();
    crew_each(one);
}

/* Room for a task that has an id: it lies in a chunk, whose head can be read. Aligned by hand and not by
 * _Alignas: Valgrind places a program at a multiple of the page and no more. */
static struct weft_task *in_a_chunk(void)
{
    static char room[2 * WEFT__SLAB_CHUNK_BYTES];
    uintptr_t past = (uintptr_t)room % WEFT__SLAB_CHUNK_BYTES;
    struct weft__slab_chunk *chunk = (void *)(room + (past ? WEFT__SLAB_CHUNK_BYTES - past : 0));
    return (void *)(chunk + 1);
}

/* A task by hand: nobody polls it, and its site is wherever the test likes. */
static void set_up(struct weft_task *task, const struct weft_site *site)
{
    *task = (struct weft_task){.site = site};
    weft__state_init(task, 1);
}

TEST(snapshot_of_another_generation_is_refused)
{
    static const struct weft_site site = {.name = "name", .file = "file"};
    struct weft_task task;
    struct weft__snapshot s;
    skip_where_filtered();
    set_up(&task, &site);
    uint64_t other = weft__state_look(&task) + (UINT64_C(1) << WEFT__STATE_GEN_SHIFT);
    ASSERT_EQ(weft__snapshot_take(&task, other, &s), -ESRCH);
    ASSERT_EQ(weft__snapshot_take(&task, other | WEFT__STATE_COMPLETE, &s), -ESRCH);
}

TEST(snapshot_of_a_task_whose_code_is_gone)
{
    struct weft_task task;
    struct weft__snapshot s;
    void *page;
    skip_where_filtered();
    ASSERT_OK(weft__mem_map(4096, &page));
    const struct weft_site *site = page;
    ASSERT_OK(weft__mem_unmap(page, 4096));
    set_up(&task, site);
    ASSERT_EQ(weft__snapshot_take(&task, weft__state_look(&task), &s), -EFAULT);
}

/* Names that end at the end of what is mapped, and names that do not end. */
TEST(snapshot_cuts_long_names_and_reads_to_the_last_byte_of_a_page)
{
    struct weft_task *task = in_a_chunk();
    struct weft__snapshot s;
    static char endless[4 * WEFT__SNAPSHOT_TEXT];
    void *pages;
    skip_where_filtered();
    memset(endless, 'n', sizeof(endless) - 1);
    ASSERT_OK(weft__mem_map(8192, &pages));
    ASSERT_OK(weft__mem_unmap((char *)pages + 4096, 4096));
    char *last = (char *)pages + 4096 - 5;
    memcpy(last, "file", 5);
    struct weft_site site = {.name = endless, .file = last};
    set_up(task, &site);
    memset(&s, 'x', sizeof(s));
    ASSERT_EQ(weft__snapshot_take(task, weft__state_look(task), &s), 0);
    ASSERT_EQ(strlen(s.name), WEFT__SNAPSHOT_TEXT - 1);
    ASSERT_STR(s.file, "file");
    ASSERT_OK(weft__mem_unmap(pages, 4096));
}

TEST(snapshot_tells_the_scope_if_there_is_one)
{
    static const struct weft_site site = {.name = "name", .file = "file"};
    struct weft__kin kin = {.lent = {.file = "scope.c", .line = 42}};
    struct weft_task *task = in_a_chunk();
    struct weft__snapshot s;
    char text[WEFT__SNAPSHOT_SCOPE_TEXT];
    skip_where_filtered();
    set_up(task, &site);
    ASSERT_OK(weft__snapshot_take(task, weft__state_look(task), &s));
    ASSERT_STR(weft__snapshot_scope(&s, text), "");
    task->scope = (uintptr_t)&kin;
    ASSERT_OK(weft__snapshot_take(task, weft__state_look(task), &s));
    ASSERT_STR(weft__snapshot_scope(&s, text), ", in the scope of scope.c:42");
    task->scope = 16; /* it cannot be read */
    ASSERT_OK(weft__snapshot_take(task, weft__state_look(task), &s));
    ASSERT_STR(weft__snapshot_scope(&s, text), "");
}

/* Nothing of it is read but by a copy. */
TEST(snapshot_of_a_task_whose_block_may_be_gone)
{
    static const struct weft_site site = {.name = "name", .file = "file"};
    struct weft__snapshot s;
    void *page;
    skip_where_filtered();
    ASSERT_OK(weft__mem_map(4096, &page));
    struct weft_task *task = page;
    set_up(task, &site);
    uint64_t state = weft__state_look(task);
    ASSERT_OK(weft__snapshot_take_far(task, state, &s));
    ASSERT_STR(s.name, "name");
    ASSERT_PTR(s.site_at, &site);
    ASSERT_EQ(weft__snapshot_take_far(task, state + (UINT64_C(1) << WEFT__STATE_GEN_SHIFT), &s),
              -ESRCH);
    ASSERT_OK(weft__mem_unmap(page, 4096));
    ASSERT_EQ(weft__snapshot_take_far(task, state, &s), -ESRCH);
}

#if defined(WEFT_FAULTS)
TEST(snapshot_where_peeking_is_filtered)
{
    static const struct weft_site site = {.name = "name", .file = "file"};
    struct weft_task task;
    struct weft__snapshot s;
    set_up(&task, &site);
    weft__fault_arm(WEFT__FAULT_PEEK, 1, 1, -EPERM);
    ASSERT_EQ(weft__snapshot_take(&task, weft__state_look(&task), &s), -EPERM);
    weft__fault_reset();
}
#endif

/* ---- under load -------------------------------------------------------------------------------------- */

#define SPAWNERS 3

static _Atomic bool over;

struct walk {
    struct weft_rt *rt;
    uint64_t kept;
    uint64_t gone;
};

static int brief(int polls)
{
    for (int i = 0; i < polls; i++)
        (void)weft_yield();
    return 0;
}

struct small {
    WEFT_FRAME(int);
    int polls;
    struct weft_yield pause;
};
static weft_async(small)
{
    weft_begin;
    while (f->polls-- > 0) {
        weft_await(f->pause, weft_yield);
    }
    weft_end;
}

/* As small, in blocks of the same class: a block is now one, now the other. */
struct other {
    WEFT_FRAME(int);
    int polls;
    struct weft_yield pause;
};
static weft_async(other)
{
    weft_begin;
    while (f->polls-- > 0) {
        weft_await(f->pause, weft_yield);
    }
    weft_end;
}

/* A name that says what it names, and that is scribbled over once the task has ended. */
static weft_task *spawn_named(char *name, int dice)
{
    switch (dice % 6) {
    case 0:
        return weft_go(brief, dice % 3);
    case 1:
        return weft_spawn(small, dice % 3);
    case 2:
        return weft_spawn(other, dice % 3);
    case 3:
        memcpy(name, "brief:own", 10);
        return weft_go_as((.name = name), brief, dice % 3);
    case 4:
        memcpy(name, "small:own", 10);
        return weft_spawn_as((.name = name), small, dice % 3);
    default:
        memcpy(name, "other:own", 10);
        return weft_spawn_as((.name = name), other, dice % 3);
    }
}

static void *spawns(void *arg)
{
    uint64_t random = test_seed() ^ (uintptr_t)arg;
    weft_task *task[8] = {NULL};
    char *name[8] = {NULL};

    for (unsigned i = 0; !load_relaxed(&over); i = (i + 1) % 8) {
        if (task[i]) {
            ASSERT_OK(weft_join(task[i], NULL));
            memset(name[i], 'x', 32);
            free(name[i]);
        }
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        name[i] = malloc(32);
        task[i] = spawn_named(name[i], (int)(random >> 40 & 0xffff));
        ASSERT(task[i]);
    }
    for (unsigned i = 0; i < 8; i++) {
        if (task[i]) ASSERT_OK(weft_join(task[i], NULL));
        free(name[i]);
    }
    return NULL;
}

/* Name, function and poll belong together. */
static void check_whole(const struct weft__snapshot *s)
{
    size_t n = 5;
    ASSERT(strstr(s->file, "sched_snapshot.c"));
    ASSERT(s->site.line > 0);
    ASSERT(strncmp(s->name, s->site.name, n) == 0);
    ASSERT(s->name[n] == '\0' || strcmp(s->name + n, ":own") == 0);
    if (s->name[0] == 'b') ASSERT_PTR(s->site.poll, weft__go_poll);
    if (s->name[0] == 's') ASSERT_PTR(s->site.poll, small_poll);
    if (s->name[0] == 'o') ASSERT_PTR(s->site.poll, other_poll);
}

static int visit(void *ctx, void *block, uint64_t state)
{
    struct walk *walk = ctx;
    struct weft__snapshot s;
    int r = weft__snapshot_take(block, state, &s);
    if (r == -ESRCH) {
        walk->gone++;
        return 0;
    }
    ASSERT_OK(r);
    ASSERT_EQ(s.id & UINT32_MAX, weft__state_generation_of(state));
    void *found = weft__slab_find(&walk->rt->blocks, s.id);
    ASSERT(!found || found == block);
    check_whole(&s);
    walk->kept++;
    return 0;
}

static void under_load(struct crew *crew)
{
    pthread_t spawner[SPAWNERS];
    struct walk walk = {.rt = crew->rt};
    uint64_t enough = test_scaled(2000);

    store_relaxed(&over, false);
    for (uintptr_t i = 0; i < SPAWNERS; i++) {
        ASSERT_OK(pthread_create(&spawner[i], NULL, spawns, (void *)(i + 1)));
    }
    while (walk.kept < enough)
        (void)weft__slab_walk(&crew->rt->blocks, visit, &walk);
    store_relaxed(&over, true);
    for (int i = 0; i < SPAWNERS; i++)
        ASSERT_OK(pthread_join(spawner[i], NULL));
}

static void under_load_of(int workers)
{
    struct crew crew;
    skip_where_filtered();
    crew_start_with(
        &crew, &(weft_rt_opts){.workers = workers, .make_default = true, .seed = test_seed() | 1});
    under_load(&crew);
    crew_stop(&crew);
}

TEST(snapshot_under_load_is_whole_or_refused)
{
    under_load_of(2);
}

TEST(snapshot_under_load_of_one_worker)
{
    under_load_of(1);
}

TEST(snapshot_under_load_of_the_current_thread)
{
    under_load_of(-1);
}
