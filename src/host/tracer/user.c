/* SPDX-License-Identifier: MIT */
#include "host/tracer/user.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

/* Groups of one user at most, as the kernel has it (NGROUPS_MAX). */
#define MOST_GROUPS 65536

/* Fills in the groups of @name; false without memory. */
static bool find_groups(const char *name, struct fathom_user *u)
{
	int n = 16;

	do {
		gid_t *groups = realloc(u->groups, (size_t)n * sizeof *groups);
		int found = n;

		if (!groups)
			return false;
		u->groups = groups;
		if (getgrouplist(name, u->gid, groups, &found) >= 0) {
			u->n_groups = (size_t)found;
			return true;
		}
		n = found > n ? found : 2 * n;
	} while (n <= MOST_GROUPS);
	return false;
}

fathom_err fathom_user_find(const char *name, struct fathom_user *ret,
			    struct fathom_errinfo *reterr)
{
	struct fathom_user u = { .groups = NULL };
	struct passwd entry;
	struct passwd *found = NULL;
	char text[16384];

	if (getpwnam_r(name, &entry, text, sizeof text, &found) || !found)
		return fathom_fail(reterr, FATHOM_E_NOT_FOUND, "", 0, "there is no such user");
	u.uid = found->pw_uid;
	u.gid = found->pw_gid;
	if (!find_groups(name, &u)) {
		fathom_user_deinit(&u);
		return fathom_fail_memory(reterr);
	}
	*ret = u;
	return FATHOM_OK;
}

void fathom_user_deinit(struct fathom_user *u)
{
	free(u->groups);
	u->groups = NULL;
}

bool fathom_user_become(const struct fathom_user *u)
{
	return !setgroups(u->n_groups, u->groups) && !setresgid(u->gid, u->gid, u->gid) &&
	       !setresuid(u->uid, u->uid, u->uid);
}
