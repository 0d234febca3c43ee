/* SPDX-License-Identifier: MIT
 *
 * nursery - one thing made of several that run at once: if one fails, the others stop, clean up, and the error comes out.
 *
 * The children write into the block's own variables: none of them outlives it. Who is told to stop lets go of what it has, and may take its time for
 * that: the end of the block waits. The same without a stack is at the bottom.
 */
#include <errno.h>
#include <stdio.h>
#include <weft/weft.h>

static const char *name_of(int r)
{
    return r == 0            ? "done"
           : r == -EIO       ? "EIO"
           : r == -ECANCELED ? "ECANCELED"
           : r == -ETIME     ? "ETIME"
                             : "another error";
}

struct part {
    int result;
    bool open;
};

/* Closes what it has opened, whatever became of it; nobody interrupts that for a second. */
static void say_goodbye(struct part *p)
{
    WEFT_SHIELD(weft_secs(1))(void) weft_sleep(weft_ms(1));
    p->open = false;
}

static int download(struct part *p, weft_time takes, int answer)
{
    p->open = true;
    int r = weft_sleep(takes);
    p->result = r < 0 ? r : answer;
    say_goodbye(p);
    return p->result;
}

/* Two that last as long as this, and a third, which is quick, and has something to say. */
static int all_or_nothing(struct part part[3], weft_time takes, weft_time third_takes,
                          int third_says)
{
    int r;
    WEFT_SCOPE(s, .error = &r)
    {
        if (weft_go_in(s, download, &part[0], takes, 0) < 0)
            break; /* no memory: what was started is cancelled */
        if (weft_go_in(s, download, &part[1], takes, 0) < 0) break;
        if (weft_go_in(s, download, &part[2], third_takes, third_says) < 0) break;
    }
    return r;
}

static void report(const char *title, int r, const struct part part[3])
{
    bool open = part[0].open || part[1].open || part[2].open;
    printf("%s: %s\n", title, name_of(r));
    printf("  parts: %s, %s, %s: %s\n", name_of(part[0].result), name_of(part[1].result),
           name_of(part[2].result), open ? "something is left open" : "all closed");
}

/* The same, stackless: the scope is a member, its end is awaited. */
struct downloads {
    WEFT_FRAME(int);
    struct part *p;
    int answer;
    struct weft_sleep sleep;
    struct weft_sleep bye;
    struct weft_shield shield;
};
static weft_async(downloads)
{
    weft_begin;
    f->p->open = true;
    weft_await(f->sleep, weft_sleep, f->answer < 0 ? weft_ms(2) : weft_secs(3600));
    f->p->result = f->sleep.ret < 0 ? f->sleep.ret : f->answer;
    weft_await(f->shield, weft_shield, weft_secs(1), weft_arm(f->bye, weft_sleep, weft_ms(1)));
    f->p->open = false;
    weft_return(f->p->result);
    weft_end;
}

struct all_stackless {
    WEFT_FRAME(int);
    struct part *part;
    int r;
    int i;
    weft_scope scope;
    struct weft_scope_join end;
};
static weft_async(all_stackless)
{
    weft_begin;
    weft_scope_init(&f->scope, .error = &f->r);
    for (f->i = 0; f->i < 3; f->i++)
        if (weft_spawn_in(&f->scope, downloads, &f->part[f->i], f->i == 1 ? -EIO : 0) < 0)
            weft_scope_fail(&f->scope, -ENOMEM);
    weft_await(f->end, weft_scope_join, &f->scope);
    weft_return(f->r);
    weft_end;
}

static int app(void)
{
    struct part part[3] = {0};
    weft_time hour = weft_secs(3600);
    int r = all_or_nothing(part, weft_ms(2), weft_ms(1), 0);
    report("all well", r, part);
    r = all_or_nothing(part, hour, weft_ms(2), -EIO);
    report("one fails", r, part);
    WEFT_TIMEOUT(weft_ms(2)) r = all_or_nothing(part, hour, hour, 0);
    report("no time", r, part);
    r = weft_run(all_stackless, part);
    report("stackless", r, part);
    return 0;
}

WEFT_MAIN(app)
