/* SPDX-License-Identifier: MIT */
/* Formats that are made of anything, with text that is; no flag '!', which asks for a fault. */
#include "fuzz.h"

#include <stdlib.h>

#include "fathom/self.h"

/* As many as are given below. */
#define N_ARGUMENTS 41

/* Whether @s, of @size bytes, ends with a whole character. */
static bool ends_whole(const char *s, size_t size)
{
	size_t back = 0;

	while (back < size && back < 3 && ((uint8_t)s[size - 1 - back] & 0xc0) == 0x80)
		back++;
	return !back || ((uint8_t)s[size - 1 - back] & 0xc0) == 0xc0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const size_t cap = fuzz_byte(&f);
	const struct fathom_bytes form = fuzz_section(&f);
	const struct fathom_bytes rest = fuzz_rest(&f);
	char *format = calloc(1, (size_t)form.size + 1);
	uint32_t *text = calloc(1, (size_t)rest.size + 8);
	char out[256];
	size_t len;

	if (!format || !text)
		abort();
	for (size_t i = 0, n = 0; i < form.size; i++) {
		/* A directive takes an argument for itself, and one for each star. */
		n += form.data[i] == '%' || form.data[i] == '*';
		format[i] = form.data[i] == '!' || form.data[i] >= 0x80 || n > N_ARGUMENTS
				    ? 's'
				    : (char)form.data[i];
	}
	if (rest.size)
		memcpy(text, rest.data, (size_t)rest.size);
	memset(out, 'Z', sizeof out);
	len = fathom_self_format(NULL, out, cap, format, text, text, 5L, text, text, -1L, text,
				 text, text, 31337L, text, text, 0L, text, text, text, text, text,
				 text, text, text, text, text, text, text, text, text, text, text,
				 text, text, text, text, text, text, text, text, text, text, text,
				 text);
	for (size_t i = cap; i < sizeof out; i++)
		if (out[i] != 'Z')
			abort();
	/* A NUL inside can only be one that %c was given, and that is shown. */
	if (cap && (strlen(out) != (len < cap ? len : strlen(out)) || strlen(out) >= cap))
		abort();
	if (cap && len < cap && !ends_whole(out, strlen(out)))
		abort();
	free(format);
	free(text);
	return 0;
}
