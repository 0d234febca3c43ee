/* SPDX-License-Identifier: MIT
 *
 * uring_place - sockets that have a place in the ring's table, which the kernel calls registering a file.
 *
 * A send that names a number has its file looked up and counted, among all who use it, and counted out again; one that names a place has not. That is 1 % of a request, and 2 where the
 * processor's caches are small. So who sends often is given the place of its slot's number:
 *     NONE -> PLACE        [count]     asked for with the send that makes it often: one that is noted, calls do not count
 *     PLACE -> PLACED      [answer]    sends name it from the next one on. Refused: it stays with its number, and does not ask again
 *     PLACED -> UNPLACE    [leave]     by whoever closes
 *     UNPLACE -> NONE      [answer]    only then is the slot another's
 * THE FILE  Who has a place is open for its peer, whoever closes the number. So UNPLACE goes to the kernel before the close of the number, in one call with the cancels of the slot's
 * requests; the table goes before its ring, which the kernel takes down when it likes; and in the child of a fork, where the ring would outlive the parent, neither ring nor table stays (lose).
 * So it takes a kernel that lets go of a file on the spot, 6.14; with an older one all sends name numbers (sys/ring.h). A child that is forked while another thread is in weft_rt_new has that
 * runtime's rings until it ends, as one has that no handler was called for (docs/LIVING_WITH_C.md).
 */
#include "driver/uring.h"

/* Debug builds place sooner, so that their tests are about it; a test may place at once. */
#if defined(WEFT_DEBUG) && !defined(OFTEN)
#define OFTEN 2
#elif !defined(OFTEN)
#define OFTEN WEFT__URING_PLACE_AFTER
#endif

/* On a current-thread runtime no send is noted. */
uint32_t weft__uring_places(const struct weft__port *port, const struct weft__ring *ring)
{
    if (port->driver->turned_by_others) return 0;
    int r = weft__ring_table_open(ring, WEFT__URING_PLACES);
    return r < 0 ? 0 : (uint32_t)r;
}

/* Once is enough: the count stops there. */
void weft__uring_count_send(struct weft__uring *u, struct weft__uring_slot *us)
{
    if (us->sends == OFTEN) return;
    us->sends++;
    if (us->sends == OFTEN && us->slot->index < u->places)
        weft__uring_ask(u, us, WEFT__URING_PLACE);
}

void weft__uring_place_answered(struct weft__uring_slot *us, int result)
{
    us->placed = result == 1; /* of one that is closed it is not looked at any more */
}

/* A PLACE that is in the kernel has been done there, or refused, which comes to the same. A ring that is down has no table soon. */
void weft__uring_leave_place(struct weft__uring *u, struct weft__uring_slot *us)
{
    weft__uring_unask(us, WEFT__URING_PLACE);
    if (u->down || !(us->placed || (weft__uring_asked(us) & WEFT__URING_PLACE))) return;
    us->placed = false;
    weft__uring_ask(u, us, WEFT__URING_UNPLACE);
}
