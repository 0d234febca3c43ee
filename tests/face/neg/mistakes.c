/* SPDX-License-Identifier: MIT
 *
 * Planted mistakes. MISTAKE is the number of one; 0 is none, and compiles. Each line `MISTAKE == n` of the file says behind
 * `expect:` a word that the compiler's message must hold; neg.sh reads them, so a new mistake is a new branch and no more.
 */
#include <weft/weft.h>

#include <stddef.h>

enum color { RED };
struct p {
    int x;
};
double scale(double v);
float half(int v);
struct p make(int v);
__int128 wide(int v);
int by_struct(struct p p);
int two(int a, const char *b);
char *name_of(int v);
int six(int a, int b, int c, int d, int e, int g);
int seven(int a, int b, int c, int d, int e, int g, int h);
int app_wrong(char *text);
extern int three;
extern weft_mutex mutex;
extern struct p sp;
typedef WEFT_CHAN(int) int_chan;
extern int_chan *ints;
extern weft_chan *anything;
typedef WEFT_SET(int) int_set;
extern int_set set_of_ints;
typedef WEFT_KEYED(int, int) int_keyed;
extern int_keyed by_int;
typedef WEFT_DELAY(int) int_delay;
extern int_delay *delayed;
typedef WEFT_BROADCAST(int) int_cast;
extern int_cast *news;

struct other {
    WEFT_FRAME(int);
    int n;
};
weft_pollfn other_poll;

struct numbers {
    WEFT_ITEMS(int);
    int n;
};
weft_pollfn numbers_poll;

struct a {
    WEFT_FRAME(int);
    struct weft_yield s;
    struct other o;
    struct weft_join j;
    struct numbers g;
    struct weft_select sel;
    struct weft_timeout to;
    struct weft_send tx;
    struct weft_set_join_next next;
    struct weft_pull pull;
    struct weft_recv rx;
    struct weft_from from;
    weft_task *t;
    int got;
};
weft_pollfn a_poll;

struct too_wide {
    WEFT_FRAME(int);
    _Alignas(64) char line[64];
};
weft_pollfn too_wide_poll;

int calls(void);
int calls(void)
{
#if MISTAKE == 0
    weft_task *x = weft_go(two, 1, "x"), *y = weft_go(name_of, 3), *z = weft_go(six, 1, 2, 3, 4, 5, 6);
    return weft_join(x, NULL) + weft_join(y, NULL) + weft_join(z, NULL) + weft_run(other, 1) + weft_yield();
#elif MISTAKE == 63 /* a message of the wrong type. expect: pointer type mismatch */
    return weft_send(ints, &sp);
#elif MISTAKE == 64 /* received into the wrong type. expect: pointer type mismatch */
    return weft_recv(ints, &sp);
#elif MISTAKE == 65 /* a channel of any type, without a size. expect: weft_chan_new_sized */
    return weft_chan_new(1, &anything);
#elif MISTAKE == 1 /* a float parameter, given an int. expect: weft_go_takes_integers_and_pointers_only */
    return weft_detach(weft_go(scale, three));
#elif MISTAKE == 2 /* a float result. expect: half must return an integer, a pointer or void */
    return weft_detach(weft_go(half, three));
#elif MISTAKE == 3 /* a struct result. expect: make must return an integer, a pointer or void */
    return weft_detach(weft_go(make, three));
#elif MISTAKE == 4 /* a struct parameter. expect: weft_go_takes_integers_and_pointers_only */
    return weft_detach(weft_go(by_struct, sp));
#elif MISTAKE == 5 /* an argument of the wrong type. expect: passing */
    return weft_detach(weft_go(two, "x", "y"));
#elif MISTAKE == 6 /* one too few. expect: too few arguments */
    return weft_detach(weft_go(two, 1));
#elif MISTAKE == 7 /* one too many. expect: too many arguments */
    return weft_detach(weft_go(two, 1, "x", 3));
#elif MISTAKE == 8 /* seven. expect: weft_go_takes_at_most_six_arguments */
    return weft_detach(weft_go(seven, 1, 2, 3, 4, 5, 6, 7));
#elif MISTAKE == 26 /* a blocking job that cannot tell an error. expect: weft_blocking: name_of must return a signed integer */
    return weft_blocking(name_of, 3) != NULL;
#elif MISTAKE == 27 /* expect: passed by .*enumeration|argument|incompatible */
    return weft_blocking(by_struct, sp);
#elif MISTAKE == 28 /* a lock that may not have been taken. expect: unused.result|ignoring return value */
    weft_lock(&mutex);
    return weft_unlock(&mutex);
#elif MISTAKE == 29 /* close of something else. expect: _Generic|generic association */
    weft_close(&three);
    return 0;
#elif MISTAKE == 9 /* a dropped handle. expect: unused.result */
    weft_go(two, 1, "x");
    return 0;
#elif MISTAKE == 10 /* a dropped handle of a stackless task. expect: unused.result */
    weft_spawn(other, 1);
    return 0;
#elif MISTAKE == 11 /* an option that does not exist. expect: named .nam.|designator .nam. */
    return weft_detach(weft_spawn_as((.nam = "x"), other));
#elif MISTAKE == 12 /* an argument that does not exist. expect: named .m.|designator .m. */
    return weft_detach(weft_spawn(other, .m = 1));
#elif MISTAKE == 13 /* too many arguments of a frame. expect: excess */
    return weft_run(other, 1, 2);
#elif MISTAKE == 14 /* an argument of the wrong type. expect: pointer to integer|integer from pointer */
    return weft_run(other, .n = "one");
#elif MISTAKE == 15 /* a result wider than a word. expect: wide must return an integer, a pointer or void */
    return weft_detach(weft_go(wide, three));
#elif MISTAKE == 16 /* a frame aligned to more than tasks are. expect: aligned to more than 16 */
    return weft_detach(weft_spawn(too_wide));
#elif MISTAKE == 17 /* an option of weft_go that does not exist. expect: named .stack.|designator .stack. */
    return weft_detach(weft_go_as((.stack = 5), two, 1, "x"));
#elif MISTAKE == 20 /* an arm that is no arm. expect: makes pointer from integer|incompatible|initializing */
    return weft_select(three);
#elif MISTAKE == 21 /* wait for something that is no token. expect: incompatible */
    return weft_token_wait(&three);
#elif MISTAKE == 22 /* keep what may hold something. expect: weft_wait may hold something; only timers, intervals and tokens are kept */
    struct weft_wait w;
    return weft_select(weft_keep(w, weft_wait));
#elif MISTAKE == 23 /* an arm in the frame of another function. expect: incompatible */
    struct weft_wait w;
    return weft_select(weft_arm(w, weft_yield));
#elif MISTAKE == 24 /* an arm with an argument that does not exist. expect: named .nanos.|designator .nanos. */
    struct weft_sleep s;
    return weft_select(weft_arm(s, weft_sleep, .nanos = 1));
#elif MISTAKE == 25 /* keep in the frame of another function. expect: incompatible|distinct pointer types */
    struct weft_wait w;
    return weft_select(weft_keep(w, weft_sleep));
#elif MISTAKE == 19 /* wait for something that is no task. expect: incompatible */
    return weft_wait(&three);
#elif MISTAKE == 18 /* join into something that is no pointer. expect: invalid type argument|requires pointer operand */
    return weft_join(weft_go(two, 1, "x"), three);
#else
    return 0;
#endif
}

#if MISTAKE == 0
#define BODY weft_await(f->s, weft_yield)
#elif MISTAKE == 30 /* a call in a stackless body. expect: weft_run.. is for fibers and threads; in a weft_async body, await it */
#define BODY f->got = weft_run(other, 1)
#elif MISTAKE == 31 /* expect: weft_yield.. is for fibers and threads */
#define BODY f->got = weft_yield()
#elif MISTAKE == 32 /* expect: weft_join.. is for fibers and threads */
#define BODY f->got = weft_join(f->t, &f->got)
#elif MISTAKE == 33 /* expect: weft_next.. is for fibers and threads */
#define BODY f->got = weft_next(f->g, numbers)
#elif MISTAKE == 34 /* the frame of another function. expect: incompatible */
#define BODY weft_await(f->o, weft_yield)
#elif MISTAKE == 35 /* an argument that does not exist. expect: named .nanos.|designator .nanos. */
#define BODY weft_await(f->o, other, .nanos = 1)
#elif MISTAKE == 36 /* an item, in a function that is no generator. expect: no member named .item. */
#define BODY weft_emit(1)
#elif MISTAKE == 37 /* an await as an expression. expect: expected expression */
#define BODY f->got = weft_await(f->s, weft_yield)
#elif MISTAKE == 38 /* join by name, without the size of the result, which cannot be seen. expect: weft_join_by_name_takes_bytes_too|expected expression */
#define BODY weft_await(f->j, weft_join, .task = f->t, .into = &f->got)
#elif MISTAKE == 40 /* a block of a fiber. expect: WEFT_PINNED is for fibers and threads */
#define BODY WEFT_PINNED f->got = 1
#elif MISTAKE == 41 /* join with an argument too many. expect: excess */
#define BODY weft_await(f->j, weft_join, f->t, &f->got, sizeof(f->got), 1)
#elif MISTAKE == 42 /* join with an argument that does not exist. expect: named .size.|designator .size. */
#define BODY weft_await(f->j, weft_join, .task = f->t, .into = &f->got, .size = 4)
#elif MISTAKE == 43 /* a block of a fiber. expect: WEFT_TIMEOUT is for fibers and threads */
#define BODY WEFT_TIMEOUT(weft_ms(5)) weft_await(f->s, weft_yield)
#elif MISTAKE == 44 /* expect: WEFT_SHIELD is for fibers and threads */
#define BODY WEFT_SHIELD(weft_ms(5)) f->got = 1
#elif MISTAKE == 45 /* expect: WEFT_UNTIL is for fibers and threads */
#define BODY WEFT_UNTIL(NULL) f->got = 1
#elif MISTAKE == 46 /* expect: weft_select.. is for fibers and threads */
#define BODY f->got = weft_select(weft_arm(f->s, weft_yield))
#elif MISTAKE == 47 /* expect: weft_sleep.. is for fibers and threads */
#define BODY f->got = weft_sleep(1)
#elif MISTAKE == 48 /* nine arms. expect: excess */
#define BODY weft_await(f->sel, weft_select, .arm = {A, A, A, A, A, A, A, A, A})
#define A weft_arm(f->s, weft_yield)
#elif MISTAKE == 49 /* a timeout of no child. expect: incompatible|invalid initializer|initializing */
#define BODY weft_await(f->to, weft_timeout, weft_ms(5), f->s)
#elif MISTAKE == 52 /* expect: WEFT_SCOPE is for fibers and threads */
#define BODY WEFT_SCOPE(s) f->got = 1
#elif MISTAKE == 53 /* expect: weft_scope_join.. is for fibers and threads */
#define BODY f->got = weft_scope_join(NULL)
#elif MISTAKE == 54 /* a child whose start is not looked at. expect: unused */
#define BODY weft_go_in(NULL, two, 1, "x")
#elif MISTAKE == 60 /* expect: weft_send.. is for fibers and threads */
#define BODY f->got = weft_send(ints, &f->got)
#elif MISTAKE == 61 /* expect: weft_recv.. is for fibers and threads */
#define BODY f->got = weft_recv(ints, &f->got)
#elif MISTAKE == 62 /* an awaited message of the wrong type. expect: pointer type mismatch */
#define BODY weft_await(f->tx, weft_send, weft_on(ints, &sp))
#elif MISTAKE == 51 /* expect: weft_blocking.. is for fibers and threads */
#define BODY f->got = weft_blocking(two, 1, "x")
#elif MISTAKE == 70 /* a member with another result. expect: does not return what this set is of */
#define BODY f->got = weft_set_try_go(&set_of_ints, name_of, 1)
#elif MISTAKE == 71 /* a result of another type. expect: pointer type mismatch */
#define BODY f->got = weft_set_try_join_next(&set_of_ints, &sp)
#elif MISTAKE == 72 /* expect: weft_set_go.. is for fibers and threads */
#define BODY f->got = weft_set_go(&set_of_ints, two, 1, "x")
#elif MISTAKE == 73 /* expect: weft_set_join_next.. is for fibers and threads */
#define BODY f->got = weft_set_join_next(&set_of_ints, &f->got)
#elif MISTAKE == 74 /* arguments of a member are checked. expect: too few arguments */
#define BODY f->got = weft_set_try_go(&set_of_ints, two, 1)
#elif MISTAKE == 75 /* an awaited result of the wrong type. expect: pointer type mismatch */
#define BODY weft_await(f->next, weft_set_join_next, &set_of_ints, &sp)
#elif MISTAKE == 76 /* an item of another type. expect: pointer type mismatch */
#define BODY weft_await(f->pull, weft_pull, ints, &sp)
#elif MISTAKE == 77 /* expect: weft_pull.. is for fibers and threads */
#define BODY f->got = weft_pull(ints, &f->got)
#elif MISTAKE == 78 /* a key of another type. expect: pointer type mismatch */
#define BODY f->got = weft_keyed_go(&by_int, &sp, two, 1, "x")
#elif MISTAKE == 79 /* an item of another type. expect: pointer type mismatch */
#define BODY f->got = weft_delay_insert(delayed, &sp, 1, NULL)
#elif MISTAKE == 80 /* on the poll's stack. expect: weft_case.. is for fibers and threads */
#define BODY weft_await(f->sel, weft_select, .arm = {weft_case(other, 1)})
#elif MISTAKE == 81 /* a message of another type. expect: pointer type mismatch */
#define BODY
static inline int picks(void)
{
    return weft_select(weft_case(weft_recv, weft_on(ints, &sp)));
}
#elif MISTAKE == 82 /* a broadcast is no channel. expect: this is no weft_chan */
#define BODY f->got = weft_try_send(news, &f->got)
#elif MISTAKE == 83 /* nor made as one. expect: this is no weft_chan */
#define BODY f->got = weft_chan_new(1, &news)
#elif MISTAKE == 84 /* nor awaited as one. expect: weft_on takes a channel or a delay queue */
#define BODY weft_await(f->rx, weft_recv, weft_on(news, &f->got))
#elif MISTAKE == 85 /* a channel is no broadcast. expect: this is no weft_cast */
#define BODY f->got = weft_broadcast_send(ints, &f->got)
#elif MISTAKE == 86 /* nor made as one. expect: this is no weft_cast */
#define BODY f->got = weft_watch_new(&f->got, &ints)
#elif MISTAKE == 87 /* a channel is no delay queue. expect: this is no weft_delay */
#define BODY f->got = weft_delay_insert(ints, &f->got, 1, NULL)
#elif MISTAKE == 88 /* there is no cursor. expect: weft_pull takes no broadcast or watch */
#define BODY weft_await(f->pull, weft_pull, news, &f->got)
#elif MISTAKE == 89 /* likewise. expect: weft_pull takes no broadcast or watch */
#define BODY f->from = weft_from(news)
#elif MISTAKE == 90 /* a channel is no set. expect: this is no weft_set */
#define BODY f->got = weft_set_try_join_next(ints, &f->got)
#elif MISTAKE == 39 /* a box that is no pointer. expect: incompatible */
#define BODY weft_await_boxed(f->o, other, 1)
#else
#define BODY
#endif

weft_async(a)
{
    weft_begin;
    BODY;
    weft_return(0);
    weft_end;
}

#if MISTAKE == 50 /* main wants int app(void) or int app(int, char **). expect: _Generic|association */
WEFT_MAIN(app_wrong)
#endif
