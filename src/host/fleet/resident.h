/* SPDX-License-Identifier: MIT */
/* The memory that mapped files take of this process. */
#ifndef FATHOM_FLEET_RESIDENT_H
#define FATHOM_FLEET_RESIDENT_H

#include <stdint.h>

/*
 * Returns the bytes of mapped files that this process has in memory (proc(5), /proc/PID/statm); 0
 * if they cannot be known.
 */
uint64_t fathom_resident_file_bytes(void);

#endif
