/* SPDX-License-Identifier: MIT
 *
 * Somebody else's program that asks for names by c-ares.
 */
#include <weft/cares.h>
#include <weft/weft.h>

#include <stdio.h>

static int app(int argc, char **argv)
{
    weft_resolver *dns;
    weft_addr_list *list;
    (void)argc, (void)argv;
    int r = weft_cares_new(NULL, &dns);
    if (r < 0) return 1;
    weft_resolver_use(dns);
    r = weft_resolve("localhost", "80", NULL, &list); /* /etc/hosts, no name server */
    if (r == 0) weft_free(list);
    weft_resolver_use(NULL);
    weft_cares_free(dns);
    printf("%s\n", weft_version());
    return r < 0;
}
WEFT_MAIN(app)
