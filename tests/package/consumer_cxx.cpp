// SPDX-License-Identifier: MIT
#include <weft/weft.h>

extern "C" const char *version_seen_by_cxx(void);

extern "C" const char *version_seen_by_cxx(void)
{
    return weft_version();
}
