/* SPDX-License-Identifier: MIT
 *
 * hello - the smallest program: which weft is this?
 */
#include <stdio.h>
#include <weft/weft.h>

int main(void)
{
    printf("weft %s, compiled against %s\n", weft_version(), WEFT_VERSION_TEXT);
    return 0;
}
