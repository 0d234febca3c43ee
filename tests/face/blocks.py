#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""blocks.py [--link FLAGS] ROOT - the C blocks of docs/FACE.md, STRUCTURE.md and CHANNELS.md compile as they stand.

Each ```c block is found by its first line and put into the surroundings that a page leaves out: functions around
statements, declarations of the reader's own functions. Not a character of the block is changed; a block that this table
does not know is an error, so no page can change unseen. One that stands in an example, too, is looked for there, letter
by letter. What the library does not have yet is either declared here (WAITING: dropped as soon as a header has it) or
keeps its block from being served, and then the reason is printed.

--link FLAGS   also link the blocks that are whole programs with these flags (say "build/dev/src/libweft.a -pthread"), by each
               compiler that is here, run them and compare what they print; a server is talked to. Without it they are compiled only. A block that still stands on a
               declaration of WAITING cannot be linked, and says so.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

COMPILERS = list(filter(shutil.which, ["gcc", "clang-19"]))
FLAGS = ["-std=gnu11", "-Wall", "-Wextra", "-Wshadow", "-Werror"]

# What blocks need and the headers do not have yet, by a name that tells when they do.
WAITING = {
    "weft_lock": """
typedef struct weft_mutex { int weft__; } weft_mutex;
#define WEFT_MUTEX_INIT {0}
int weft_lock(weft_mutex *m);
void weft_unlock(weft_mutex *m);
""",
    "weft_stream": """
typedef struct weft_stream weft_stream;
ssize_t weft_read(weft_stream *c, void *buf, size_t len);
ssize_t weft_write_all(weft_stream *c, const void *buf, size_t len);
void weft_close(void *what);
""",
    "weft_tcp_listen": """
typedef struct weft_listener weft_listener;
int weft_tcp_listen(const char *where, weft_listener **into);
int weft_accept(weft_listener *l, weft_stream **into);
""",
    "weft_file_read": """
typedef struct weft_file weft_file;
ssize_t weft_file_read(weft_file *file, void *buf, size_t len, int64_t offset);
""",
}

# Parts of a block are cut at lines that begin with these words; each part is put between its own two texts.
WHOLE = [(None, "", "")]

SERVED = {
    "#include <weft/weft.h>": {
        "needs": [],
        "program": "7\n",
        "parts": WHOLE,
    },
    "struct delayed_sum {": {
        "needs": [],
        "parts": [
            (None, "", ""),
            ("weft_task *t", "int spawn_it(void);\nint spawn_it(void) {\n", "\nreturn weft_detach(t); }\n"),
        ],
    },
    "struct countdown {": {
        "needs": [],
        "parts": [(None, "", "\nint count(void);\nint count(void) { return weft_run(countdown, .left = 3); }\n")],
    },
    "static WEFT_TASK_LOCAL(": {
        "needs": [],
        "before": """
struct request { int id; };
extern int shared;
int member(int *shared);
int render(void *gl);
int compact(void *db);
int join_all(weft_task *t, weft_task *p, weft_task *b);
void call_library_of_this_thread(void);
extern void *gl, *db;
""",
        "parts": [(None, "", "\nint run_it(void);\nint run_it(void) { return this_request() ? app() : 0; }\n")],
    },
    "WEFT_TIMEOUT(": {
        "needs": [],
        "before": """
int fetch(const char *url, void *page);
typedef WEFT_CHAN(int) job_chan;
int from_a_fiber(const char *url, void *page, job_chan *jobs, int job, bool busy);
int from_a_fiber(const char *url, void *page, job_chan *jobs, int job, bool busy)
{
int r = 0;
""",
        "parts": [(None, "", "\nreturn r + job; }\n")],
    },
    "weft_await(f->to, weft_timeout": {
        "needs": [],
        "before": """
struct fetch { WEFT_FRAME(int); const char *url; };
weft_pollfn fetch_poll;
struct say_goodbye { WEFT_FRAME(int); void *c; };
weft_pollfn say_goodbye_poll;
struct awaits {
    WEFT_FRAME(int); const char *url; weft_chan *jobs; void *c; int job; weft_token *stop;
    struct weft_timeout to; struct weft_select sel; struct weft_shield sh;
    struct fetch get; struct say_goodbye bye; struct weft_recv rx; struct weft_token_wait quit;
};
weft_async(awaits) { weft_begin;
""",
        "parts": [(None, "", "\nweft_return(0); weft_end; }\n")],
    },
    "WEFT_UNTIL(": {
        "needs": [],
        "before": """
int serve(void *listener);
struct beat { WEFT_FRAME(int); };
weft_pollfn beat_poll;
typedef WEFT_CHAN(int) job_chan;
int from_a_fiber(weft_token *stop, void *listener, job_chan *jobs, int job);
int from_a_fiber(weft_token *stop, void *listener, job_chan *jobs, int job)
{
struct weft_recv rx; struct weft_sleep quiet; struct beat heart; int r = 0;
""",
        "parts": [(None, "", "\nreturn r + job; }\n")],
    },
    "weft_interval every": {
        "needs": [],
        "before": "void sample(weft_time now);\nint time_of(weft_time start, struct weft_sleep idle);\n",
        "parts": [(None, "int time_of(weft_time start, struct weft_sleep idle) {\nint r;\n", "\nreturn r; }\n")],
    },
    "int sum = weft_run": {
        "needs": [],
        "before": """
struct delayed_sum { WEFT_FRAME(int); int a, b; };
weft_pollfn delayed_sum_poll;
int resize(const char *path);
struct point { double x, y; };
struct point middle(struct point a, struct point b);
struct awaits { WEFT_FRAME(int); const char *path; int r; struct weft_join join; };
""",
        "parts": [
            (None, "int from_a_fiber(void);\nint from_a_fiber(void) {\n", "\nreturn sum; }\n"),
            ("weft_await", "weft_async(awaits) { weft_begin;\n", "\nweft_return(f->r); weft_end; }\n"),
            ("struct mid", "", "\nstruct point mids(void);\nstruct point mids(void) { return weft_run(mid, .a = {1, 2}); }\n"),
        ],
    },
}

SERVED["weft_await(f->job, weft_blocking"] = {
    "needs": [],
    "before": """
int resize_image(const char *path);
struct query;
int resolve(struct query *q);
void query_free(void *q, int64_t ret);
struct resizes { WEFT_FRAME(int); const char *path; struct weft_blocking job; };
""",
    "parts": [
        (None, "weft_async(resizes) { weft_begin;\n", "\nweft_return((int)f->job.ret); weft_end; }\n"),
        ("r = weft_lane_new", "int asks(struct query *q);\nint asks(struct query *q) { weft_lane *dns; int r;\n", "\nreturn r; }\n"),
    ],
}

SERVED["weft_buf *b;"] = {
    "needs": [],
    "before": "static const weft_codec packets = WEFT_CODEC_LENGTHS(4, 1 << 20);\n",
    "parts": [
        (None, "int speaks(weft_stream *conn);\nint speaks(weft_stream *conn) {\nint r;\n", "\nreturn r; }\n"),
        ("r = weft_copy_bidirectional",
         "int64_t carries(weft_stream *client, weft_stream *server, weft_file *file);\n"
         "int64_t carries(weft_stream *client, weft_stream *server, weft_file *file) {\n"
         "int r; int64_t n; uint64_t up, down; char *text; size_t len; weft_stream *in, *out, *log;\n",
         "\nweft_free(text); return r < 0 ? r : n; }\n"),
    ],
}

SERVED["typedef WEFT_CHAN("] = {
    "needs": ["weft_lock", "weft_file_read"],
    "before": """
struct job { int number; };
void work(struct job *job);
int resize_image(const char *path);
""",
    "parts": [
        (None, "", ""),
        ("r = weft_chan_new", "int uses_jobs(struct job job);\nint uses_jobs(struct job job) {\nint r;\n", "\nreturn r; }\n"),
        ("weft_mutex m", "ssize_t uses_rest(const char *path, weft_file *file, void *buf, size_t len, int64_t offset);\n"
         "ssize_t uses_rest(const char *path, weft_file *file, void *buf, size_t len, int64_t offset) {\nint r; ssize_t n;\n",
         "\nreturn r < 0 ? r : n; }\n"),
    ],
}

SERVED["weft_await(f->tx, weft_send"] = {
    "needs": [],
    "before": """
struct job { int number; };
struct event { int what; };
struct config { int level; };
typedef WEFT_CHAN(struct job) job_chan;
typedef WEFT_BROADCAST(struct event) event_cast;
typedef WEFT_WATCH(struct config) config_watch;
struct sends_jobs { WEFT_FRAME(int); job_chan *jobs; struct job job; struct weft_send tx; };
ssize_t uses_them(job_chan *jobs, event_cast *events, config_watch *config);
""",
    "parts": [
        (None, "weft_async(sends_jobs) { weft_begin;\n", "\nweft_return(f->tx.ret); weft_end; }\n"),
        ("if ((r = weft_reserve", "ssize_t uses_them(job_chan *jobs, event_cast *events, config_watch *config) {\n"
         "struct job job = {0}, batch[16]; struct event event; struct config now = {0}; weft_cursor at = {0}, seen = {0}; int r; ssize_t n;\n",
         "\nreturn r < 0 ? r : n; }\n"),
    ],
}

SERVED["static weft_sem slots"] = {
    "needs": [],
    "before": "int load(void);\nint shares(void);\nint shares(void)\n{\nint r;\n",
    "parts": [(None, "", "\nreturn r; }\n")],
}

SERVED["typedef WEFT_SET(int) int_set;"] = {
    "needs": [],
    "before": """
int fetch(const char *url);
void report(int status);
int fetch_all(const char **urls, int count);
int fetch_all(const char **urls, int count)
{
int r = 0, status;
""",
    "parts": [(None, "", "\nreturn r; }\n")],
}
SERVED["r = weft_keyed_go(&sessions"] = {
    "needs": [],
    "before": """
typedef WEFT_KEYED(uint64_t, int) session_set;
typedef WEFT_DELAY(int) idle_delay;
typedef WEFT_CHAN(int) conn_chan;
int session(int conn);
int uses_all(weft_tracker tracker, session_set sessions, uint64_t id, int conn, idle_delay *idle, conn_chan *from);
int uses_all(weft_tracker tracker, session_set sessions, uint64_t id, int conn, idle_delay *idle, conn_chan *from)
{
int r, status;
weft_delay_key key;
""",
    "parts": [(None, "", "\nreturn r < 0 ? r : status; }\n")],
}

SERVED["if (weft_spawn_in("] = {
    "needs": ["weft_stream"],
    "before": """
struct client { WEFT_FRAME(int); weft_stream *c; };
weft_pollfn client_poll;
struct serves { WEFT_FRAME(int); weft_stream *c; weft_scope clients; struct weft_scope_join end; };
weft_async(serves) { weft_begin;
""",
    "parts": [(None, "", "\nweft_return(f->end.ret); weft_end; }\n")],
}


def echoes(server):
    """A client of the echo server, which says where it listens. It must end well with one connection still open."""
    port = int(server.stdout.readline())
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    for number, client in enumerate(clients):
        client.sendall(b"%d " % number * 1000)
    for number, client in enumerate(clients[:-1]):
        client.shutdown(socket.SHUT_WR)  # what was sent still comes back, and then the end
        with client.makefile("rb") as answer:
            assert answer.read() == b"%d " % number * 1000, f"client {number} heard something else"
        client.close()
    assert clients[-1].recv(1) == b"4"
    server.send_signal(signal.SIGTERM)
    assert server.wait() == 0, f"it ends with {server.returncode}"
    clients[-1].close()


# The page's port may be somebody else's here: it listens at one that is free, and says which.
SERVED["static int client("] = {
    "needs": ["weft_stream", "weft_tcp_listen"],
    "before": """
#include <string.h>
static int listen_at_a_free_one(const char *where, weft_listener **into)
{
char text[WEFT_ADDR_TEXT];
int r = strcmp(where, "127.0.0.1:5555") ? -EINVAL : weft_tcp_listen("127.0.0.1:0", into);
if (r == 0 && weft_listener_print(*into, text, sizeof text) > 0) printf("%s\\n", strrchr(text, ':') + 1);
fflush(stdout);
return r;
}
#undef weft_tcp_listen
#define weft_tcp_listen listen_at_a_free_one
""",
    "talks": echoes,
    "parts": [(None, "", "\nWEFT_MAIN(app)\n")],
}

SERVED["WEFT_SCOPE(s, .error"] = {
    "needs": [],
    "before": """
struct page { int words; };
int fetch(const char *url, struct page *into);
int from_mirror(const char *url, struct page *into);
int start_db(weft_scope *s, void *conf);
int crawls(const char **url, int count, struct page *page, void *conf);
int crawls(const char **url, int count, struct page *page, void *conf)
{
int r = 0;
""",
    "parts": [(None, "", "\nreturn r; }\n")],
}

# ---- docs/STRUCTURE.md: each of our programs does what is said of it, on a clock that stands, so that nobody is late by accident. ----

STANDS = {"WEFT_PAUSED": "1"}

SERVED["while ((r = weft_accept("] = {
    "needs": ["weft_stream", "weft_tcp_listen"],
    "before": """
int client(weft_stream *c);
int drains(weft_listener *l);
int drains(weft_listener *l)
{
weft_scope requests = {0}; weft_stream *c; int r;
""",
    "parts": [(None, "", "\nreturn r; }\n")],
}

SERVED["static int fetch(weft_time d"] = {
    "needs": [],
    "program": "42, too late: nobody searches\n",
    "env": STANDS,
    "before": """
#include <stdio.h>
static int searching;
static int find(weft_time d, int *found)
{
searching++;
int r = weft_sleep(d);
if (r == 0) *found = 42;
searching--;
return r;
}
""",
    "parts": [(None, "", """
static int app(void)
{
int found = 0, r = fetch(0, &found);
if (r < 0) return r;
printf("%d, ", found);
for (int i = 0; i < 100; i++)
    if (fetch(weft_secs(3600), &found) != -ETIME || searching) return -EIO;
printf("too late: nobody searches\\n");
return 0;
}
WEFT_MAIN(app)
""")],
}

SERVED["static int leaves_early("] = {
    "needs": [],
    "program": "8 were held, 0 are\n",
    "env": STANDS,
    "before": """
#include <stdatomic.h>
#include <stdio.h>
struct guards { atomic_int held, ever; };
static int holds_a_guard(struct guards *open)
{
open->held++;
open->ever++;
int r = weft_sleep(weft_secs(3600));
WEFT_SHIELD(weft_secs(60)) (void)weft_sleep(weft_ms(5)); /* cleans up */
open->held--;
return r;
}
""",
    "parts": [(None, "", """
static int app(void)
{
struct guards open = {0};
int r = leaves_early(&open);
printf("%d were held, %d are\\n", open.ever, open.held);
return r;
}
WEFT_MAIN(app)
""")],
}

SERVED["static int locks_once_more("] = {
    "needs": [],
    "program": "locked and unlocked\n",
    "env": STANDS,
    "before": """
#include <stdio.h>
static int takes_it_first(weft_mutex *m, weft_event *taken)
{
int r = weft_lock(m);
weft_event_set(taken);
if (r < 0) return r;
r = weft_sleep(weft_ms(20));
return weft_unlock(m) < 0 ? -EIO : r;
}
""",
    "parts": [(None, "", """
static int app(void)
{
weft_mutex m = WEFT_MUTEX_INIT;
weft_event taken = WEFT_EVENT_INIT;
int r;
WEFT_SCOPE(s, .error = &r)
{
    if (weft_go_in(s, takes_it_first, &m, &taken) < 0) break;
    if (weft_event_wait(&taken) < 0 || locks_once_more(&m) < 0) weft_scope_fail(s, -EIO);
}
if (r == 0) printf("locked and unlocked\\n");
return r;
}
WEFT_MAIN(app)
""")],
}

SERVED["static int gathers("] = {
    "needs": [],
    "program": "EIO, and nobody counts\n",
    "env": STANDS,
    "before": """
#include <stdio.h>
static int fails(int error, weft_time after)
{
int r = weft_sleep(after);
return r < 0 ? r : error;
}
static int counts(int *seen)
{
int r;
while ((r = weft_sleep(weft_ms(1))) == 0) ++*seen;
return r;
}
""",
    "parts": [(None, "", """
static int app(void)
{
int seen = 0, r = gathers(&seen), then = seen;
int slept = weft_sleep(weft_ms(20));
if (r == -EIO && slept == 0 && seen == then) printf("EIO, and nobody counts\\n");
return 0;
}
WEFT_MAIN(app)
""")],
}

# ---- docs/CHANNELS.md ----

SERVED["static int meter("] = {
    "needs": [],
    "example": "go_select.c",
    "before": "#include <stdio.h>\ntypedef WEFT_CHAN(int) int_chan;\n",
    "parts": [(None, "", "\nint measures(int_chan *numbers, int_chan *quit);\n"
               "int measures(int_chan *numbers, int_chan *quit) { return meter(numbers, quit); }\n")],
}

PAGES = ["FACE.md", "STRUCTURE.md", "CHANNELS.md"]
NOT_YET = {}


def blocks_of(page):
    return re.findall(r"^```c\n(.*?)^```$", page, re.S | re.M)


def entry_of(table, block):
    found = [value for start, value in table.items() if block.startswith(start)]
    return found[0] if found else None


def has_name(root, name):
    """Do the headers have it?"""
    return any(re.search(rf"\b{name}\b", path.read_text()) for path in (root / "include/weft").glob("*.h"))


def cut(block, parts):
    """The block in as many pieces as there are parts, each beginning where its word says."""
    begins = [0]
    for word, _, _ in parts[1:]:
        at = re.search(rf"^{re.escape(word)}", block, re.M)
        if not at:
            sys.exit(f"blocks.py: no line begins with {word!r} in:\n{block}")
        begins.append(at.start())
    pieces = [block[a:b] for a, b in zip(begins, begins[1:] + [len(block)])]
    assert "".join(pieces) == block
    return pieces


def source_of(block, entry, missing):
    text = "#include <weft/weft.h>\n" + "".join(WAITING[name] for name in missing) + entry.get("before", "")
    for piece, (_, before, after) in zip(cut(block, entry["parts"]), entry["parts"]):
        text += before + piece + after
    return text


def compile_all(root, source, work):
    """Returns how many compilations failed."""
    failures = 0
    path = work / "block.c"
    path.write_text(source)
    for compiler in COMPILERS:
        for level in "-O0", "-O2":
            command = [compiler, *FLAGS, level, "-I", str(root / "include"), "-c", str(path), "-o", str(work / "block.o")]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                failures += 1
                print(f"{compiler} {level}:\n{done.stderr}")
    return failures


def runs(program, entry):
    """What is wrong with it, or None."""
    if "talks" not in entry:
        done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, **entry.get("env", {})})
        if done.returncode == 0 and done.stdout == entry["program"]:
            return None
        return f"exit {done.returncode}, printed {done.stdout!r} instead of {entry['program']!r}\n{done.stderr}"
    server = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    try:
        entry["talks"](server)
    except (AssertionError, OSError, ValueError) as wrong:
        return repr(wrong)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    return None


def run_program(root, source, link, entry, work):
    """The hook for whole programs. Returns by how many compilers they failed."""
    failures = 0
    path = work / "program.c"
    path.write_text(source)
    for compiler in COMPILERS:
        command = [compiler, *FLAGS, "-O2", "-I", str(root / "include"), str(path), "-o", str(work / "program"), *link.split()]
        done = subprocess.run(command, capture_output=True, text=True)
        wrong = done.stderr if done.returncode else runs(str(work / "program"), entry)
        if wrong is not None:
            failures += 1
            print(f"{compiler}: {wrong}")
    return failures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--link")
    parser.add_argument("root", type=pathlib.Path)
    args = parser.parse_args()
    blocks = [(page, number, block) for page in PAGES
              for number, block in enumerate(blocks_of((args.root / "docs" / page).read_text()), 1)]
    failures = served = 0
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        for page, number, block in blocks:
            title = f"{page}, block {number} ({block.splitlines()[0][:40].strip()})"
            entry = entry_of(SERVED, block)
            if not entry:
                reason = entry_of(NOT_YET, block)
                if reason is None:
                    failures += 1
                    print(f"{title}: FAILED: blocks.py does not know it")
                else:
                    print(f"{title}: not yet served: {reason}")
                continue
            missing = [name for name in entry["needs"] if not has_name(args.root, name)]
            source = source_of(block, entry, missing)
            failed = compile_all(args.root, source, work)
            if "example" in entry and block not in (args.root / "examples" / entry["example"]).read_text():
                failed += 1
                print(f"{title}: examples/{entry['example']} does not have it as it stands here")
            note = f", with declarations of {', '.join(missing)}" if missing else ""
            whole = "program" in entry or "talks" in entry
            if args.link and whole and not missing:
                failed += run_program(args.root, source, args.link, entry, work)
                note += f", and runs by {' and '.join(COMPILERS)}"
            elif whole:
                note += "; a whole program, not run: " + ("the library lacks these" if missing else "no --link")
            print(f"{title}: {'FAILED' if failed else 'compiles' + note}")
            failures += failed > 0
            served += not failed
    print(f"{len(blocks)} blocks, {served} served, {failures} failed")
    return 1 if failures or not served else 0


sys.exit(main())
