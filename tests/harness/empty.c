/* SPDX-License-Identifier: MIT
 *
 * A test program whose tests are all compiled out, as one about fault injection is in a release build: it counts as skipped.
 */
#include "test.h"

#if defined(WEFT_IN_NO_BUILD_AT_ALL)
TEST(is_not_there)
{
}
#endif
