/* SPDX-License-Identifier: MIT */
/* made FAMILY...: makes the system calls of these families. */
#include "made.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

char big[65536];

char *end_of_page(size_t size)
{
	char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	munmap(pages + 4096, 4096);
	return pages + 4096 - size;
}

int a_file(const char *name)
{
	return open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
}

static const struct {
	const char *name;
	void (*make)(void);
} families[] = {
	{ "files", files },
	{ "descriptors", descriptors },
	{ "data", data },
	{ "memory", memory },
	{ "addresses", addresses },
	{ "options", options },
	{ "messages", messages },
	{ "signals", signals },
	{ "timers", timers },
	{ "processes", processes },
	{ "schedulers", schedulers },
	{ "identities", identities },
	{ "controls", controls },
	{ "futexes", futexes },
	{ "waiting", waiting },
	{ "system_v", system_v },
	{ "rare", rare },
	{ "heads", heads },
	{ "programs", programs },
	{ "requests", requests },
	{ "keys", keys },
	{ "tracing", tracing },
	{ "events", events },
	{ "interfaces", interfaces },
	{ "filters", filters },
};

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof families / sizeof *families; k++)
			if (!strcmp(argv[i], families[k].name))
				families[k].make();
	return 7;
}
