/* SPDX-License-Identifier: MIT
 *
 * resolve - looks names up, all at once, a few at a time, and none for longer than it is worth.
 *
 *     resolve [--limit=N] [--timeout=MS] NAME...
 *
 * Each name is a task in a scope: the scope's limit says how many are asked for at once, and each lookup has a time of its own. A name that nobody
 * answers costs its task that time, and the program no more: given up, a lookup is over at once. Numbers are answered on the spot.
 */
#include <weft/weft.h>

#include <stdio.h>
#include <string.h>

struct looked_up {
    const char *name;
    weft_time timeout;
    weft_addr_list *list;
    int r;
};

static int look_up(struct looked_up *l)
{
    WEFT_TIMEOUT(l->timeout) l->r = weft_resolve(l->name, NULL, NULL, &l->list);
    return 0; /* one that fails is no reason to stop the others */
}

/* Without the port, which nobody asked for: "127.0.0.1:0", "[::1]:0". */
static void print_host(const weft_addr *addr)
{
    char text[WEFT_ADDR_TEXT];
    int length = weft_addr_print(addr, text, sizeof text) - (int)strlen(":0");
    bool six = text[0] == '[';
    printf(" %.*s", length - 2 * six, text + six);
}

static void print(const struct looked_up *l)
{
    printf("%s:", l->name);
    if (l->r < 0) printf(" %s", l->r == -ENOENT ? "no such name" : strerror(-l->r));
    for (size_t i = 0; l->r == 0 && i < l->list->count; i++)
        print_host(&l->list->addr[i]);
    printf("\n");
}

static int app(int argc, char **argv)
{
    static struct looked_up names[256];
    int limit = 8;
    int timeout_ms = 5000;
    int count = 0;
    int r = 0;
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        if (sscanf(argv[i], "--limit=%d", &limit) == 1) continue;
        if (sscanf(argv[i], "--timeout=%d", &timeout_ms) == 1) continue;
        if (count < 256) names[count++].name = argv[i];
    }
    if (limit < 1) limit = 1;
    WEFT_SCOPE(all, .error = &r, .limit = (unsigned)limit)
    {
        for (int i = 0; i < count; i++) {
            names[i].timeout = weft_ms(timeout_ms);
            names[i].r = -ECANCELED;
            if ((r = weft_go_in(all, look_up, &names[i])) < 0) break;
        }
    }
    for (int i = 0; i < count; i++) {
        print(&names[i]);
        failed += names[i].r < 0;
        weft_free(names[i].list);
    }
    printf("%d names, %d not found\n", count, failed);
    return r;
}

WEFT_MAIN(app)
