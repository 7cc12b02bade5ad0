/* SPDX-License-Identifier: MIT */
/**
 * @file
 * The versions of the headers and of the loaded library.
 */
#ifndef FATHOM_VERSION_H
#define FATHOM_VERSION_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FATHOM_VERSION_MAJOR 0
#define FATHOM_VERSION_MINOR 1
#define FATHOM_VERSION_PATCH 0

/**
 * Safety: as-safe
 * Memory: the text is static
 * Returns: the version of the library, such as "0.1.0"
 */
FATHOM_API const char *fathom_version(void);

#ifdef __cplusplus
}
#endif

#endif
