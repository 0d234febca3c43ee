/* SPDX-License-Identifier: MIT
 *
 * model_atomic - what base/atomic.h's wrappers become under WEFT_MODEL: calls into the checker, with the place they stand at.
 */
#ifndef MODEL_ATOMIC_H
#define MODEL_ATOMIC_H

#include "model.h"

enum model_order { MODEL_relaxed, MODEL_acquire, MODEL_release, MODEL_acq_rel, MODEL_seq_cst };
enum model_rmw { MODEL_EXCHANGE, MODEL_ADD, MODEL_SUB, MODEL_OR, MODEL_AND };

/* Where an operation stands; static, one per place. */
struct model_site {
    const char *file;
    int line;
    const char *text;               /* the operation as written */
};

uint64_t model_load(const struct model_site *at, const volatile void *p, size_t bytes, enum model_order order);
void model_store(const struct model_site *at, volatile void *p, size_t bytes, uint64_t value, enum model_order order);
uint64_t model_rmw(const struct model_site *at, volatile void *p, size_t bytes, enum model_rmw op, uint64_t operand, enum model_order order);
/* true: stored. false: *expected is what was seen. */
bool model_cas(const struct model_site *at, volatile void *p, size_t bytes, uint64_t *expected, uint64_t desired, enum model_order good,
               enum model_order bad);
void model_fence(const struct model_site *at, enum model_order order);
void model_membarrier_at(const struct model_site *at); /* every thread passes a full fence where it stands */
void model_plain(const struct model_site *at, const volatile void *p, size_t bytes, bool write);

#define MODEL_SITE_(words) static const struct model_site model_at_ = {__FILE__, __LINE__, words}
#define MODEL_TYPE_(p)     __typeof__((void)0, *(p)) /* the comma drops _Atomic and const */
#define MODEL_RAW_(v)                                                                                                  \
    ({                                                                                                                 \
        __auto_type model_v_ = (v);                                                                                    \
        uint64_t model_raw_ = 0;                                                                                       \
        __builtin_memcpy(&model_raw_, &model_v_, sizeof(model_v_));                                                    \
        model_raw_;                                                                                                    \
    })
#define MODEL_OUT_(p, raw)                                                                                             \
    ({                                                                                                                 \
        uint64_t model_out_raw_ = (raw);                                                                               \
        MODEL_TYPE_(p) model_out_;                                                                                     \
        __builtin_memcpy(&model_out_, &model_out_raw_, sizeof(model_out_));                                            \
        model_out_;                                                                                                    \
    })

#define weft__a_load(p, order)                                                                                         \
    ({                                                                                                                 \
        MODEL_SITE_("load_" #order "(" #p ")");                                                                        \
        MODEL_OUT_(p, model_load(&model_at_, (p), sizeof(*(p)), MODEL_##order));                                       \
    })
#define weft__a_store(p, v, order)                                                                                     \
    ({                                                                                                                 \
        MODEL_SITE_("store_" #order "(" #p ", " #v ")");                                                               \
        model_store(&model_at_, (p), sizeof(*(p)), MODEL_RAW_((MODEL_TYPE_(p))(v)), MODEL_##order);                    \
    })
#define MODEL_RMW_(p, v, op, name, order)                                                                              \
    ({                                                                                                                 \
        MODEL_SITE_(name "_" #order "(" #p ", " #v ")");                                                               \
        MODEL_OUT_(p, model_rmw(&model_at_, (p), sizeof(*(p)), op, MODEL_RAW_((MODEL_TYPE_(p))(v)), MODEL_##order));   \
    })
#define weft__a_exchange(p, v, order)  MODEL_RMW_(p, v, MODEL_EXCHANGE, "exchange", order)
#define weft__a_fetch_add(p, v, order) MODEL_RMW_(p, v, MODEL_ADD, "fetch_add", order)
#define weft__a_fetch_sub(p, v, order) MODEL_RMW_(p, v, MODEL_SUB, "fetch_sub", order)
#define weft__a_fetch_or(p, v, order)  MODEL_RMW_(p, v, MODEL_OR, "fetch_or", order)
#define weft__a_fetch_and(p, v, order) MODEL_RMW_(p, v, MODEL_AND, "fetch_and", order)
#define weft__a_cas(p, e, v, good, bad)                                                                                \
    ({                                                                                                                 \
        MODEL_SITE_("cas_" #good "(" #p ", " #v ")");                                                                  \
        MODEL_TYPE_(p) *model_e_ = (e);                                                                                \
        uint64_t model_old_ = MODEL_RAW_(*model_e_);                                                                   \
        bool model_ok_ = model_cas(&model_at_, (p), sizeof(*(p)), &model_old_, MODEL_RAW_((MODEL_TYPE_(p))(v)),        \
                                   MODEL_##good, MODEL_##bad);                                                         \
        if (!model_ok_) __builtin_memcpy(model_e_, &model_old_, sizeof(*model_e_));                                    \
        model_ok_;                                                                                                     \
    })
#define weft__a_fence(order)                                                                                           \
    ({                                                                                                                 \
        MODEL_SITE_("fence_" #order "()");                                                                             \
        model_fence(&model_at_, MODEL_##order);                                                                        \
    })
#define mb_after_rmw()                                                                                                 \
    ({                                                                                                                 \
        MODEL_SITE_("mb_after_rmw()");                                                                                 \
        model_fence(&model_at_, MODEL_seq_cst);                                                                        \
    })
#define model_membarrier()                                                                                             \
    ({                                                                                                                 \
        MODEL_SITE_("membarrier()");                                                                                   \
        model_membarrier_at(&model_at_);                                                                               \
        0;                                                                                                             \
    })
#define fence_light() ((void)0) /* nothing: what a membarrier finds here is what it makes of it */
#define plain_read(p)                                                                                                  \
    ({                                                                                                                 \
        MODEL_SITE_("plain_read(" #p ")");                                                                             \
        model_plain(&model_at_, (p), sizeof(*(p)), false);                                                             \
        *(p);                                                                                                          \
    })
#define plain_write(p, v)                                                                                              \
    ({                                                                                                                 \
        MODEL_SITE_("plain_write(" #p ", " #v ")");                                                                    \
        __typeof__(*(p)) model_w_ = (v);                                                                               \
        model_plain(&model_at_, (p), sizeof(*(p)), true);                                                              \
        *(p) = model_w_;                                                                                               \
    })
#define cpu_pause() model_yield()

#endif
