/* SPDX-License-Identifier: MIT */
/* swapped ONE TWO: another library is put in the place of the first, which is loaded, before we look. */
#include "check.h"

#include <dlfcn.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	void *handle = dlopen(argv[1], RTLD_NOW);
	const uintptr_t hidden = (uintptr_t)((void *(*)(void))dlsym(handle, "where_hidden"))();
	const uintptr_t exported = (uintptr_t)((void *(*)(void))dlsym(handle, "where_exported"))();
	struct looked a;

	(void)argc;
	expect(rename(argv[2], argv[1]) == 0);
	start(FATHOM_SELF_FULL);
	/* With privilege the file itself is still to be had, else what memory has of it. */
	(void)look_up_now(&a, hidden);
	if (geteuid() == 0)
		expect(a.is->symbol && strcmp(a.is->symbol, "hidden_in_one") == 0);
	else
		expect(!a.is->symbol || strcmp(a.is->symbol, "hidden_in_two") != 0);
	expect_name(exported, "exported_by_one", 0);
	return end();
}
