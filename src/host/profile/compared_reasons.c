/* SPDX-License-Identifier: MIT */
#include "host/profile/compared_reasons.h"

#include <stdlib.h>
#include <string.h>

/* The least port that Linux gives to clients by itself: ip(7), ip_local_port_range. */
#define LEAST_EPHEMERAL 32768
/* The most digits of a port. */
#define PORT_DIGITS 5

static const char digits[] = "0123456789";

/* Returns whether @c is one of @set, and no NUL. */
static int is_of(char c, const char *set)
{
	return c && strchr(set, c) != NULL;
}

/* Returns how many bytes of @at, after the byte @before, are a number that each run has anew. */
static size_t number_size(char before, const char *at)
{
	const int is_hex = at[0] == '0' && at[1] == 'x';
	const size_t n = is_hex ? 2 + strspn(at + 2, "0123456789abcdef") : strspn(at, digits);

	if (n <= (is_hex ? 2 : 0) || (at[n] && !is_of(at[n], " ,)]")))
		return 0;
	if (before == ':')
		return !is_hex && n == PORT_DIGITS && atoi(at) >= LEAST_EPHEMERAL ? n : 0;
	return is_of(before, " [(") ? n : 0;
}

void fathom_reason_generalize(const char *reason, char *to, size_t size)
{
	char before = '\0';
	size_t used = 0;

	while (*reason && used + 1 < size) {
		const size_t n = number_size(before, reason);

		before = *reason;
		to[used++] = n ? '*' : *reason;
		reason += n ? n : 1;
	}
	to[used] = '\0';
}
