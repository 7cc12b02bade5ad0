/* SPDX-License-Identifier: MIT */
/* Returns the text of an error by the C library, in English. */
#ifndef FATHOM_BASE_ERROR_TEXT_H
#define FATHOM_BASE_ERROR_TEXT_H

/* Returns the text of error @number, static; NULL for an unknown number. mt-safe. */
const char *fathom_error_text(int number);

#endif
