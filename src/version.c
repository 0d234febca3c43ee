/* SPDX-License-Identifier: MIT
 *
 * version - the answer to "which library am I linked with?".
 */
#include <weft/version.h>

const char *weft_version(void)
{
    return WEFT_VERSION_TEXT;
}

unsigned weft_version_number(void)
{
    return WEFT_VERSION_NUMBER;
}
