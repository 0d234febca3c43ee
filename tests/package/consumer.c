/* SPDX-License-Identifier: MIT
 *
 * A program of somebody else: does the installed library belong to the installed headers, seen from C and from C++?
 */
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

const char *version_seen_by_cxx(void);

int main(void)
{
    if (strcmp(weft_version(), WEFT_VERSION_TEXT) != 0 || weft_version_number() != WEFT_VERSION_NUMBER) {
        fprintf(stderr, "the library is %s, the headers are %s\n", weft_version(), WEFT_VERSION_TEXT);
        return 1;
    }
    if (strcmp(version_seen_by_cxx(), WEFT_VERSION_TEXT) != 0) {
        fprintf(stderr, "C++ sees %s, C sees %s\n", version_seen_by_cxx(), WEFT_VERSION_TEXT);
        return 1;
    }
    printf("%s\n", weft_version());
    return 0;
}
