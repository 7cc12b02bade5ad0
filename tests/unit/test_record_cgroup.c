/* SPDX-License-Identifier: MIT */
/* Cgroups of processes, from texts as cgroups(7) describes /proc/PID/cgroup. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "host/profile/record_cgroup.h"

static void one_path_is_found(void **state)
{
	static const struct {
		const char *text;
		const char *path; /* NULL: none */
	} cases[] = {
		/* the unified hierarchy */
		{ "0::/user.slice/user-1000.slice/a:b.scope\n",
		  "/user.slice/user-1000.slice/a:b.scope" },
		{ "0::/\n", "/" },
		{ "0::/", "/" },
		{ "0::/../other\n", "/../other" },
		{ "0::/a (deleted)\n", "/a" },
		{ "0::/ (deleted)\n", "/" },
		/* beside hierarchies of version 1 */
		{ "5:cpu,cpuacct:/v1\n1:name=systemd:/system.slice/x\n0::/system.slice/y\n",
		  "/system.slice/y" },
		{ "5:cpu,cpuacct:/v1\n1:name=systemd:/system.slice/x\n0::/\n", "/system.slice/x" },
		{ "5:cpu,cpuacct:/v1\n1:name=systemd:/system.slice/x\n", "/system.slice/x" },
		{ "9:name=systemd:/\n8:pids:/\n4:memory:/docker/12\n3:cpu:/other\n0::/\n",
		  "/docker/12" },
		{ "2:name=other:/x\n1:name=systemd:/\n", "/x" },
		{ "2:cpu:/\n1:name=systemd:/\n", "/" },
		/* none */
		{ "", NULL },
		{ "\n\n:\n", NULL },
		{ "0::\n", NULL },
		{ "0::relative\n", NULL },
		{ "0:/a\n", NULL },
		{ "0\n::/b\n", "/b" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[256];
		const char *found;

		(void)snprintf(text, sizeof text, "%s", cases[i].text);
		found = fathom_cgroup_find(text);
		if (!found != !cases[i].path || (found && strcmp(found, cases[i].path) != 0))
			fail_msg("case %zu: %s", i, found ? found : "none");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_path_is_found) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
