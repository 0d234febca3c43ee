/* SPDX-License-Identifier: MIT
 *
 * port - a driver on epoll without a runtime: nobody is stirred, or calmed.
 */
#ifndef WEFT_TESTS_PORT_H
#define WEFT_TESTS_PORT_H

#include "driver/driver.h"
#include "test.h"

static inline void no_stir(struct weft__driver *driver, uint32_t port)
{
    (void)driver;
    (void)port;
}

static inline void no_calm(struct weft__driver *driver)
{
    (void)driver;
}

static inline struct weft__driver *driver_of(uint32_t ports)
{
    struct weft__driver *driver;
    ASSERT_OK(weft__driver_new(&weft__driver_epoll, ports, &driver));
    driver->stir = no_stir;
    driver->calm = no_calm;
    return driver;
}

static inline void driver_end(struct weft__driver *driver)
{
    weft__driver_stop(driver);
    weft__driver_let_go(driver);
}

#endif
