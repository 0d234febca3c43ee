/* SPDX-License-Identifier: MIT
 *
 * run_commands - shell commands at the same time: so many at once, each with so long; what they say and how they ended, in order.
 *
 *     ./run_commands [-j LIMIT] [-t SECONDS] 'make -C a' 'make -C b'
 *     ./run_commands -j 4 <commands.txt                              or one of each line
 *
 * A scope with a limit starts them: it waits while too many run. Each leads a process group of its own; one that is out of time is killed with
 * all that it started, and ^C does the same to all of them. The exit code is 0 if all of theirs were.
 */
#include <weft/weft.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAID_MOST (16 << 20) /* bytes that one may say on each of its outputs */

struct command {
    const char *text;
    int r; /* 0, or why there is no end of it to tell */
    weft_proc_output all;
};

struct options {
    uint32_t limit;
    weft_time timeout;
};

/* A deadline ends the run inside with -ETIME: then it was killed, and has ended. */
static int run(struct command *c, weft_time timeout)
{
    const char *const argv[] = {"/bin/sh", "-c", c->text, NULL};
    weft_proc_opts opts = {.argv = argv, .in = WEFT_PROC_NULL, .group = true};
    WEFT_TIMEOUT(timeout) c->r = weft_proc_run(&opts, NULL, 0, SAID_MOST, &c->all);
    return 0; /* a command that fails does not stop the others */
}

/* Returns whether it ended well. */
static bool tell(const struct command *c)
{
    (void)fwrite(c->all.out, 1, c->all.out_bytes, stdout);
    (void)fwrite(c->all.err, 1, c->all.err_bytes, stderr);
    if (c->r == -ETIME) {
        printf("timeout: %s\n", c->text);
    } else if (c->r < 0) {
        printf("error %d: %s\n", -c->r, c->text);
    } else if (WIFSIGNALED(c->all.status)) {
        printf("signal %d: %s\n", WTERMSIG(c->all.status), c->text);
    } else {
        printf("exit %d: %s\n", WEXITSTATUS(c->all.status), c->text);
    }
    return c->r == 0 && c->all.status == 0;
}

static int run_all(struct command *commands, int count, const struct options *o)
{
    int r = 0;
    WEFT_SCOPE(s, .limit = o->limit)
    {
        for (int i = 0; i < count && r == 0; i++)
            r = weft_go_in(s, run, &commands[i], o->timeout); /* waits for room */
    } /* waits for those that run; told to stop, they are killed first */
    if (r == 0) r = weft_yield(); /* was it told to stop meanwhile? */
    bool well = true;
    for (int i = 0; i < count; i++) {
        if (r == 0) well &= tell(&commands[i]);
        weft_free(commands[i].all.out);
        weft_free(commands[i].all.err);
    }
    return r < 0 ? r : !well;
}

/* ---- the command line; standard input is read before anything runs ---- */

static int run_lines(const struct options *o)
{
    struct command *commands = NULL, *more;
    char *line = NULL;
    size_t cap = 0;
    int count = 0, r = 0;
    while (r == 0 && getline(&line, &cap, stdin) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (!*line) continue;
        more = realloc(commands, ((size_t)count + 1) * sizeof *commands);
        char *text = more ? strdup(line) : NULL;
        if (more) commands = more;
        if (text) commands[count++] = (struct command){.text = text};
        if (!text) r = -ENOMEM;
    }
    free(line);
    if (r == 0) r = run_all(commands, count, o);
    while (count > 0)
        free((void *)(uintptr_t)commands[--count].text);
    free(commands);
    return r;
}

static int run_args(int count, char **argv, const struct options *o)
{
    struct command *commands = calloc((size_t)count, sizeof *commands);
    if (!commands) return -ENOMEM;
    for (int i = 0; i < count; i++)
        commands[i].text = argv[i];
    int r = run_all(commands, count, o);
    free(commands);
    return r;
}

static int app(int argc, char **argv)
{
    struct options o = {.limit = 8, .timeout = WEFT_FOREVER};
    for (int c; (c = getopt(argc, argv, "j:t:")) != -1;) {
        if (c == 'j' && atoi(optarg) > 0) {
            o.limit = (uint32_t)atoi(optarg);
        } else if (c == 't' && atof(optarg) > 0) {
            o.timeout = (weft_time)(atof(optarg) * 1e9);
        } else {
            (void)fprintf(stderr, "usage: %s [-j LIMIT] [-t SECONDS] [COMMAND...]\n", argv[0]);
            return 2;
        }
    }
    return optind < argc ? run_args(argc - optind, argv + optind, &o) : run_lines(&o);
}

WEFT_MAIN(app)
