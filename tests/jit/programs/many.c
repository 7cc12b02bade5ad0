/* SPDX-License-Identifier: MIT */
/* many NUMBER: registers so many functions with GDB's interface, each by a symbol file of its own.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "gdb_jit.h"
#include "symfile.h"

int main(int argc, char **argv)
{
	const size_t n = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;
	struct jit_code_entry *entries = calloc(n, sizeof *entries);
	struct symfile *files = calloc(n, sizeof *files);
	char *code = mmap(NULL, n * CODE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);

	if (!entries || !files || code == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < n; i++) {
		make_symfile(&files[i], (uint32_t)i, (uint64_t)(code + i * CODE_SIZE));
		entries[i].symfile_addr = (const char *)&files[i];
		entries[i].symfile_size = sizeof files[i];
		register_entry(&entries[i]);
	}
	/* None ever goes. */
	(void)unregister_entry;
	printf("code %p\ndone\n", (void *)code);
	fflush(stdout);
	return getchar();
}
