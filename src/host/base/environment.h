/* SPDX-License-Identifier: MIT */
/* Questions to the environment beside fathom_secure_getenv(). */
#ifndef FATHOM_BASE_ENVIRONMENT_H
#define FATHOM_BASE_ENVIRONMENT_H

#define FATHOM_PROGRAM_PATH 512

/*
 * Returns what execvp(3) is to be given for the program @name: @name itself, or, in a secure
 * process, which obeys no PATH, its path in one of the usual folders, in @path.
 */
const char *fathom_secure_program(const char *name, char path[FATHOM_PROGRAM_PATH]);

#endif
