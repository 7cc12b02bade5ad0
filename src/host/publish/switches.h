/* SPDX-License-Identifier: MIT */
/* Which consumers are on. */
#ifndef FATHOM_PUBLISH_SWITCHES_H
#define FATHOM_PUBLISH_SWITCHES_H

#include <stdint.h>

/* Returns the consumers @on as the words of @text, FATHOM_JIT's value or NULL, change them. */
uint32_t fathom_jit_switch(uint32_t on, const char *text);

#endif
