/* SPDX-License-Identifier: MIT */
/* Names: whatever libiberty makes of them, the result is bounded, and so is the time. */
#include "fuzz.h"

#include <stdlib.h>

#include "host/base/demangle.h"
#include "safe/base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const bool ada = fuzz_byte(&f) & 1;
	const struct fathom_bytes rest = fuzz_rest(&f);
	const struct fathom_str name = { (const char *)rest.data, (uint32_t)rest.size };
	struct fathom_bytes_array out = { 0 };

	if (rest.size && !memchr(rest.data, 0, rest.size)) {
		if (!fathom_demangle(name, ada, &out) && out.n > FATHOM_MAX_DEMANGLED)
			abort();
		if (fathom_clone_suffix(name) > name.size)
			abort();
	}
	fathom_array_free(&out);
	return 0;
}
