/* SPDX-License-Identifier: MIT */
/* What programs ask the environment for, beside fathom_secure_getenv(). */
#ifndef FATHOM_BASE_ENVIRONMENT_H
#define FATHOM_BASE_ENVIRONMENT_H

/*
 * Becomes the program @argv, found as execvp(3) does; in a secure process by no PATH but the usual
 * folders. Returns with errno if that fails.
 */
void fathom_secure_exec(char *const *argv);

#endif
