/*
 * neo_embedded.h: what an exported library has beside neo.h (docs/export.md).
 */
#ifndef NEO_EMBEDDED_H
#define NEO_EMBEDDED_H

#include "neo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* neo_load() of the module that is in the library. Its weights are read where they are. */
NEO_API int neo_load_embedded(int threads, neo_module** module);

#ifdef __cplusplus
}
#endif

#endif
