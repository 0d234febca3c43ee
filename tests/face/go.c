/* SPDX-License-Identifier: MIT
 *
 * weft_go: nought to six arguments, every size and sign of result; weft_fiber: frames with what weft_go refuses.
 */
#include "face.h"

static int marks;

static void none(void)
{
    marks++;
}
static int one(int a)
{
    return a + 1;
}
static long two(const char *s, unsigned char b)
{
    return (long)strlen(s) * b;
}
static int three(int a, long b, short c)
{
    return a - (int)b - c;
}
static uint64_t four(uint64_t a, uint32_t b, uint16_t c, uint8_t d)
{
    return a + b + c + d;
}
static int five(int a, int b, int c, int d, int e)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e;
}
static int six(int a, int b, int c, int d, int e, int g)
{
    weft_yield();
    return a * 100000 + b * 10000 + c * 1000 + d * 100 + e * 10 + g;
}

/* One function for each result; the value has its top bit set, so that a wrong sign or size shows. */
#define RESULTS(X)                                                                                 \
    X(s8, signed char)                                                                             \
    X(u8, unsigned char)                                                                           \
    X(s16, short)                                                                                  \
    X(u16, unsigned short)                                                                         \
    X(s32, int)                                                                                    \
    X(u32, unsigned)                                                                               \
    X(s64, long)                                                                                   \
    X(u64, unsigned long)                                                                          \
    X(ll, long long)                                                                               \
    X(logic, bool)
#define DEFINE(word, T)                                                                            \
    static T give_##word(long v)                                                                   \
    {                                                                                              \
        return (T)v;                                                                               \
    }
RESULTS(DEFINE)

#define CALL(word, T)                                                                              \
    do {                                                                                           \
        T is = 0;                                                                                  \
        char small[sizeof(T) + 1];                                                                 \
        CHECK_EQ(weft_join(weft_go(give_##word, -77L), &is), 0);                                   \
        CHECK(is == (T) - 77L);                                                                    \
        CHECK_EQ(weft_join(weft_go(give_##word, 1), &small), -EINVAL);                             \
        weft_call call = weft_bind(give_##word, 1);                                                \
        CHECK_EQ(call.ret_bytes, sizeof(T));                                                       \
        CHECK_EQ(call.ret_signed, (T) - 1 < (T)1 && sizeof(T) * 8 > 1 && (T) - 1 != 1);            \
    } while (0);

static void check_results(void)
{
    RESULTS(CALL)
    weft_call call = weft_bind(none);
    CHECK_EQ(call.ret_bytes, 0);
}

/* As in a call, also where they are below zero. The compiler may say what it says of a call. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wfloat-conversion"
static void check_floating_arguments(void)
{
    const double below = -3.75; /* what the compiler knows it converts itself */
    volatile float above = 1e9f; /* and this the machine */
    long product = 0;
    uint64_t sum = 0;

    CHECK_EQ(weft_join(weft_go(give_s64, below), &product), 0);
    CHECK_EQ(product, -3);
    CHECK_EQ(weft_join(weft_go(four, above, 1u, 1, 1), &sum), 0);
    CHECK_EQ(sum, 1000000003);
    CHECK_EQ(weft_bind(one, below).arg[0], (uint64_t)-3);
}
#pragma GCC diagnostic pop

static char *find(char *text, int c)
{
    return strchr(text, c);
}

static int wait_for(weft_task *t)
{
    int r = 0;
    int joined = weft_join(t, &r);

    return joined < 0 ? joined : r;
}

static int add_both(weft_task *a, weft_task *b)
{
    return wait_for(a) + wait_for(b);
}

static int named(void)
{
    return strcmp(weft_task_name(weft_self()), "db");
}

static void check_arguments(void)
{
    char text[] = "weft";
    char *at = NULL;
    long product = 0;
    uint64_t big = 0;
    int i = 0;

    CHECK_EQ(weft_join(weft_go(none), NULL), 0);
    CHECK_EQ(marks, 1);
    CHECK_EQ(wait_for(weft_go(one, i++)), 1);
    CHECK_EQ(i, 1);
    CHECK_EQ(weft_join(weft_go(two, "four", 200), &product), 0);
    CHECK_EQ(product, 800);
    CHECK_EQ(wait_for(weft_go(three, -1, -2L, -3)), 4);
    CHECK_EQ(weft_join(weft_go(four, UINT64_MAX, 1u, 65535, 255), &big), 0);
    CHECK_EQ(big, 65535 + 255);
    CHECK_EQ(wait_for(weft_go(five, 1, 2, 3, 4, 5)), 55);
    CHECK_EQ(wait_for(weft_go(six, 1, 2, 3, 4, 5, 6)), 123456);
    CHECK_EQ(weft_join(weft_go(find, text, 'f'), &at), 0);
    CHECK(at == text + 2);
    CHECK_EQ(wait_for(weft_go(add_both, weft_go(one, 1), weft_go(one, 2))), 5);
    CHECK_EQ(wait_for(weft_go_as((.name = "db", .stack_bytes = 1 << 20), named)), 0);
    CHECK_EQ(wait_for(weft_go(one, wait_for(weft_go(one, 1)))), 3);
}

/* ---- a fiber with a frame ---- */
struct point {
    double x, y;
};
struct mid {
    WEFT_FRAME(struct point);
    struct point a, b;
    float weight;
};
static weft_fiber(mid)
{
    CHECK_EQ(weft_yield(), 0);
    f->ret = (struct point){f->a.x + (f->b.x - f->a.x) * f->weight,
                            f->a.y + (f->b.y - f->a.y) * f->weight};
}

/* Seven arguments, and a result that may fail. */
struct seven {
    WEFT_FRAME(int);
    int a, b, c, d, e, g, h;
};
static weft_fiber(seven)
{
    f->ret = f->a + f->b + f->c + f->d + f->e + f->g + f->h;
}

/* Both kinds, awaited by a stackless one. */
struct mixed {
    WEFT_FRAME(double);
    struct mid mid;
    struct seven seven;
    struct weft_join join;
    int six;
};
static weft_async(mixed)
{
    weft_begin;
    weft_await(f->mid, mid, {0, 0}, {4, 8}, .weight = 0.5f);
    weft_await(f->seven, seven, 1, 2, 3, 4, 5, 6, 7);
    weft_await(f->join, weft_join, weft_go(six, 1, 2, 3, 4, 5, 6), &f->six);
    CHECK_EQ(f->join.ret, 0);
    weft_return(f->mid.ret.x + f->mid.ret.y + f->seven.ret + f->six);
    weft_end;
}

static void check_frames(void)
{
    struct point p = {0, 0};

    CHECK_EQ(weft_join(weft_spawn(mid, .a = {1, 1}, .b = {3, 5}, .weight = 0.5f), &p), 0);
    CHECK(p.x == 2.0 && p.y == 3.0);
    p = weft_run(mid, .b = {3, 5}, .weight = 1);
    CHECK(p.x == 3.0 && p.y == 5.0);
    CHECK(weft_run(mixed) == 2 + 4 + 28 + 123456);
}

static int app(int argc, char **argv)
{
    CHECK(argc >= 1 && argv[0]);
    check_arguments();
    check_floating_arguments();
    check_results();
    check_frames();
    return 0;
}

WEFT_MAIN(app)
