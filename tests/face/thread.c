/* SPDX-License-Identifier: MIT
 *
 * A plain thread needs no runtime to run a stackless function.
 */
#include "face.h"

struct doubled {
    WEFT_FRAME(int);
    int a;
    struct countdown pause;
};

static weft_async(doubled)
{
    weft_begin;
    weft_await(f->pause, countdown, 5);
    weft_return(2 * f->a);
    weft_end;
}

int main(void)
{
    CHECK_EQ(weft_run(doubled, weft_run(doubled, .a = 3)), 12);
    CHECK(!weft_self());
    return 0;
}
