/* SPDX-License-Identifier: MIT */
/* What the C library says of an error, in English. */
#ifndef FATHOM_BASE_ERROR_TEXT_H
#define FATHOM_BASE_ERROR_TEXT_H

/* Returns the text of error @number, static; NULL for an unknown number. mt-safe. */
const char *fathom_error_text(int number);

#endif
