/* SPDX-License-Identifier: MIT
 *
 * recursion - a stackless function that awaits itself.
 *
 * What a stackless function awaits lies inside its struct, and no struct fits into itself. So the
 * frame of the inner call is boxed: weft_await_boxed puts it on the heap, and weft_unbox gives the
 * result and frees it. All of this is one task, however deep it goes.
 */
#include <stdio.h>
#include <weft/weft.h>

struct node {
    long value;
    struct node *left, *right;
};

struct walk {
    WEFT_FRAME(long); /* the sum; below zero is an errno */
    const struct node *node;
    long left, right;
    struct weft_yield pause;
    struct walk *kid; /* the box: NULL but during the await and the unbox behind it */
};
static weft_async(walk)
{
    weft_begin;
    if (!f->node) weft_return(0);
    weft_await(f->pause, weft_yield); /* suspended in the depth: all callers wait with it */
    if (f->pause.ret < 0) weft_return(f->pause.ret);

    weft_await_boxed(f->kid, walk, .node = f->node->left);
    f->left = weft_unbox(f->kid); /* -ENOMEM if there was no memory for the box */
    if (f->left < 0) weft_return(f->left);
    weft_await_boxed(f->kid, walk, .node = f->node->right);
    f->right = weft_unbox(f->kid);
    if (f->right < 0) weft_return(f->right);
    weft_return(f->left + f->node->value + f->right);
    weft_end;
}

enum { NODES = 1023 };
static struct node nodes[NODES];

/* Nodes 0 .. 1022 as a full tree: the children of n are 2n + 1 and 2n + 2. */
static const struct node *tree(void)
{
    for (int n = 0; n < NODES; n++) {
        nodes[n].value = n + 1;
        nodes[n].left = 2 * n + 1 < NODES ? &nodes[2 * n + 1] : NULL;
        nodes[n].right = 2 * n + 2 < NODES ? &nodes[2 * n + 2] : NULL;
    }
    return nodes;
}

static int app(void)
{
    long sum = weft_run(walk, .node = tree());
    if (sum < 0) return (int)sum;
    printf("sum of 1 to %d: %ld\n", NODES, sum);
    return 0;
}

WEFT_MAIN(app)
