/* SPDX-License-Identifier: MIT
 *
 * go_select - a loop around a select over channels, as one writes it in Go, line by line (docs/CHANNELS.md has both).
 *
 * A meter adds up what comes on one channel, reports at every tick, and ends when the other channel is closed. Whoever loses a round has
 * taken nothing: no number is lost between them.
 */
#include <stdio.h>
#include <weft/weft.h>

typedef WEFT_CHAN(int) int_chan;

/* As the page has it, letter by letter. By default it is the end, or this task was cancelled. */
/* clang-format off */
static int meter(int_chan *numbers, int_chan *quit)
{
    weft_interval every = weft_interval_of(weft_ms(1));
    int number, reports = 0, sum = 0;
    for (;;) {
        switch (weft_select(weft_case(weft_recv, weft_on(numbers, &number)),
                            weft_case(weft_tick, &every),
                            weft_case(weft_recv, weft_on(quit, &number)))) {
        case 0: sum += number; break;
        case 1: reports++; break;
        default: printf("sum %d, %d\n", sum, reports); return 0;
        }
    }
}
/* clang-format on */

static int app(void)
{
    int_chan *numbers = NULL, *quit = NULL;
    int r = weft_chan_new(0, &numbers);
    if (r == 0) r = weft_chan_new(0, &quit);
    if (r < 0) return r;

    weft_task *task = weft_go(meter, numbers, quit);
    for (int i = 1; i <= 100 && r == 0; i++) {
        r = weft_send(numbers, &i);
        if (r == 0 && i % 25 == 0) r = weft_sleep(weft_ms(2));
    }
    weft_chan_close(quit);
    int joined = weft_join(task, NULL);
    weft_chan_free(numbers);
    weft_chan_free(quit);
    return r < 0 ? r : joined;
}

WEFT_MAIN(app)
