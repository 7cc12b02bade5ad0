/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Reports of profiles: sums of the weights of their samples, by function and along stacks.
 */
#ifndef FATHOM_PROFILE_REPORT_H
#define FATHOM_PROFILE_REPORT_H

#include <fathom/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fathom_profile;

#ifdef __cplusplus
}
#endif

#endif
