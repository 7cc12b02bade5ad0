/* SPDX-License-Identifier: MIT */
#include "host/profile/compared_modules.h"

#include <stdlib.h>
#include <string.h>

#include "host/base/path.h"
#include "host/profile/samples_format.h"

/* Modules that have a name in common. Arrays have A's first. */
struct namesakes {
	uint32_t n[2];
	uint32_t path[2]; /* number of the last one */
};

/* Modules by a name of theirs. */
struct names {
	struct fathom_name_table texts;
	FATHOM_ARRAY_OF(struct namesakes); /* by number of text */
};

static void names_deinit(struct names *n)
{
	fathom_name_table_deinit(&n->texts);
	fathom_array_free(n);
}

/* Notes that the module @path of profile @side is called @text. False without memory. */
static bool note(struct names *names, const char *text, int side, uint32_t path)
{
	const uint32_t number = fathom_name_table_add(&names->texts, text);
	struct namesakes *all;

	if (number == FATHOM_KEY_NEW ||
	    (number >= names->n && !fathom_array_push(names, (struct namesakes){ .n = { 0 } })))
		return false;
	all = &names->items[number];
	all->n[side]++;
	all->path[side] = path;
	return true;
}

/* Cuts the version off @name, a library's: "libfoo.so.1.2" becomes "libfoo.so". */
static void cut_version(char *name)
{
	static const char suffix[] = ".so";
	const size_t size = sizeof suffix - 1;
	size_t n = strlen(name);

	while (n && strchr("0123456789.", name[n - 1]))
		n--;
	if (n > size && name[n] == '.' && !memcmp(name + n - size, suffix, size))
		name[n] = '\0';
}

/* Notes both names of a module. */
static bool note_both(struct names names[2], const char *path, int side, uint32_t number)
{
	const char *last = fathom_path_last_part(path);
	char *unversioned = strdup(last);
	bool is_noted = unversioned != NULL;

	if (is_noted) {
		cut_version(unversioned);
		is_noted = note(&names[0], last, side, number) &&
			   note(&names[1], unversioned, side, number);
	}
	free(unversioned);
	return is_noted;
}

/* Returns what @path is called in all runs: JIT code is that of a process. */
static const char *comparable(const char *path)
{
	return !strncmp(path, FATHOM_PROFILE_JIT, sizeof FATHOM_PROFILE_JIT - 1) ? "[jit]" : path;
}

/* Adds the modules of profile @p, each path once. */
static bool add_modules(struct fathom_compared_modules *m, struct names names[2],
			const struct fathom_profile *p, int side)
{
	for (size_t i = 0; i < p->n_modules; i++) {
		const char *path = comparable(p->modules[i].path);
		const uint32_t number = fathom_name_table_add(&m->paths, path);
		const struct fathom_compared_module fresh = { .match = number };

		if (number == FATHOM_KEY_NEW || (number >= m->n && !fathom_array_push(m, fresh)))
			return false;
		if (m->items[number].sides >> side & 1)
			continue;
		m->items[number].sides |= (uint8_t)(1u << side);
		if (!note_both(names, path, side, number))
			return false;
	}
	return true;
}

/* Matches modules whose name only one module of each profile has. */
static void match(struct fathom_compared_modules *m, const struct names *names)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct namesakes *all = &names->items[i];

		if (all->n[0] == 1 && all->n[1] == 1)
			m->items[all->path[1]].match = m->items[all->path[0]].match;
	}
}

/* Names the modules, so that no two that do not match have one name. */
static bool name_all(struct fathom_compared_modules *m, struct names *lasts)
{
	for (size_t i = 0; i < m->n; i++) {
		const char *last = fathom_path_last_part(m->paths.items[i].text);
		const uint32_t number = fathom_name_table_add(&lasts->texts, last);

		if (number >= lasts->n)
			return false;
		m->items[i].name = lasts->items[number].n[0] > 1 || lasts->items[number].n[1] > 1
					   ? m->paths.items[i].text
					   : last;
	}
	return true;
}

bool fathom_compared_modules_init(struct fathom_compared_modules *m,
				  const struct fathom_profile *const profiles[2])
{
	struct names names[2] = { 0 };
	bool is_done = true;

	for (int side = 0; side < 2 && is_done; side++)
		is_done = add_modules(m, names, profiles[side], side);
	for (int i = 0; i < 2 && is_done; i++)
		match(m, &names[i]);
	is_done = is_done && name_all(m, &names[0]);
	names_deinit(&names[0]);
	names_deinit(&names[1]);
	return is_done;
}

const struct fathom_compared_module *fathom_compared_modules_find(struct fathom_compared_modules *m,
								  const char *path)
{
	const uint32_t number =
		path ? fathom_name_table_add(&m->paths, comparable(path)) : FATHOM_KEY_NEW;

	return number < m->n ? &m->items[number] : NULL;
}

void fathom_compared_modules_deinit(struct fathom_compared_modules *m)
{
	fathom_name_table_deinit(&m->paths);
	fathom_array_free(m);
}
