/* SPDX-License-Identifier: MIT */
#include "cli/compat/llvm/opened.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fathom/compat.h>

#include "cli/common.h"

/* A module takes up to four mappings; Linux allows a process 65,530 (vm.max_map_count). */
#define MAX_MODULES  16384
#define MIN_BUCKETS  64
#define BYTES_IN_HEX 2

/* Opening. */

/* Returns LLVM's message for a file that cannot be opened. */
static const char *open_error(const char *path, const struct fathom_errinfo *info)
{
	struct stat st;

	/* Do not touch the file again: its file system does not answer. */
	if (info->err == FATHOM_E_TIMEOUT)
		return info->what;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return strerror(EISDIR);
	if (info->err == FATHOM_E_OS && info->os_errno)
		return strerror(info->os_errno);
	if (info->err == FATHOM_E_CHANGED)
		return info->what;
	return "The file was not recognized as a valid object file";
}

bool llvm_module_is_missing(const struct llvm_module *m)
{
	return m->is_build_id && !m->target && !m->error;
}

const char *llvm_module_error(const struct llvm_module *m)
{
	return m->error ? m->error : "could not find build ID";
}

static void open_path(const struct llvm_modules *all, const char *path, struct llvm_module *m)
{
	const struct fathom_target_options where = { .size = sizeof where,
						     .debug_dirs = all->options->debug_dirs };
	struct fathom_errinfo info = { 0 };

	if (fathom_target_open_file(all->session, path, &where, &m->target, &info))
		m->error = must(strdup(open_error(path, &info)));
}

/* Opens DIR/.build-id/ab/cdef.debug if it exists. */
static void open_build_id(const struct llvm_modules *all, const char *dir, struct llvm_module *m)
{
	const size_t first = m->name_size > BYTES_IN_HEX ? BYTES_IN_HEX : m->name_size;
	char path[4096];
	size_t n = (size_t)snprintf(path, sizeof path, "%s/.build-id/%.*s/%s.debug", dir,
				    (int)first, m->name, m->name + first);

	if (n >= sizeof path)
		return;
	for (size_t i = strlen(dir); i < n; i++)
		if (path[i] >= 'A' && path[i] <= 'F')
			path[i] = (char)(path[i] - 'A' + 'a');
	if (access(path, F_OK) == 0)
		open_path(all, path, m);
}

static void open_module(const struct llvm_modules *all, struct llvm_module *m)
{
	static const char *const usual[] = { "/usr/lib/debug", NULL };
	const char *const *dirs = all->options->debug_dirs ? all->options->debug_dirs : usual;

	struct fathom_target_info info;

	if (!m->is_build_id)
		open_path(all, m->name, m);
	for (; *dirs && llvm_module_is_missing(m); dirs++)
		open_build_id(all, *dirs, m);
	if (m->target) {
		fathom_target_get_info(m->target, &info);
		m->is_relocatable = info.is_relocatable;
	}
}

/* Variables of relocatable files. */

static int compare_objects(const void *a, const void *b)
{
	const struct llvm_object *x = a;
	const struct llvm_object *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return 0;
}

/* Reads the variables of @m on first use. */
static void read_objects(struct llvm_module *m)
{
	struct fathom_section_info section;
	struct fathom_symbol_info symbol;
	size_t cap = 0;

	m->has_objects = true;
	for (size_t i = 1; fathom_target_symbol(m->target, i, &symbol) == FATHOM_OK; i++) {
		if ((symbol.type != STT_OBJECT && symbol.type != STT_NOTYPE) || !symbol.name[0] ||
		    symbol.section == SHN_UNDEF ||
		    fathom_target_section(m->target, symbol.section, &section) != FATHOM_OK ||
		    !(section.flags & SHF_ALLOC) || section.flags & SHF_EXECINSTR)
			continue;
		if (m->n_objects == cap) {
			cap = cap ? 2 * cap : 64;
			m->objects = must(realloc(m->objects, cap * sizeof *m->objects));
		}
		m->objects[m->n_objects++] =
			(struct llvm_object){ symbol.value, symbol.size, symbol.section };
	}
	if (m->n_objects)
		qsort(m->objects, m->n_objects, sizeof *m->objects, compare_objects);
}

/*
 * Returns the variable that LLVM means by @address, the largest of those that start together; or
 * NULL.
 */
static const struct llvm_object *object_at(const struct llvm_module *m, uint64_t address)
{
	const struct llvm_object *o;
	size_t low = 0;
	size_t high = m->n_objects;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (m->objects[mid].value <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	o = &m->objects[low - 1];
	return !o->size || address - o->value < o->size ? o : NULL;
}

/* Returns the address at @off in .text, or one that holds nothing if @off is after its end. */
static uint64_t address_in_text(const struct llvm_module *m, uint64_t off)
{
	struct fathom_section_info section;

	for (size_t i = 1; fathom_target_section(m->target, i, &section) == FATHOM_OK; i++)
		if (strcmp(section.name, ".text") == 0 && off < section.size)
			return section.address + off;
	return UINT64_MAX;
}

uint64_t llvm_module_address(struct llvm_module *m, uint64_t address, bool is_data)
{
	const struct llvm_object *object = NULL;
	struct fathom_section_info section;

	if (!m->is_relocatable)
		return address;
	if (is_data && !m->has_objects)
		read_objects(m);
	if (is_data)
		object = object_at(m, address);
	if (object && fathom_target_section(m->target, object->section, &section) == FATHOM_OK)
		return section.address + address;
	return address_in_text(m, address);
}

/* The LRU list, most recent first. */

static void unlink_module(struct llvm_modules *all, struct llvm_module *m)
{
	*(m->newer ? &m->newer->older : &all->newest) = m->older;
	*(m->older ? &m->older->newer : &all->oldest) = m->newer;
}

static void link_newest(struct llvm_modules *all, struct llvm_module *m)
{
	m->newer = NULL;
	m->older = all->newest;
	*(m->older ? &m->older->newer : &all->oldest) = m;
	all->newest = m;
	m->batch = all->batch;
}

/* The hash table. */

/* Returns the bucket of @name (FNV-1a). */
static struct llvm_module **bucket_of(const struct llvm_modules *all, struct llvm_text name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < name.size; i++)
		hash = (hash ^ (uint8_t)name.data[i]) * UINT64_C(0x100000001b3);
	return &all->buckets[(hash ^ hash >> 32) & (all->n_buckets - 1)];
}

static struct llvm_text name_of(const struct llvm_module *m)
{
	return (struct llvm_text){ m->name, m->name_size };
}

/* Doubles the buckets. */
static void grow(struct llvm_modules *all)
{
	free(all->buckets);
	all->n_buckets = all->n_buckets ? 2 * all->n_buckets : MIN_BUCKETS;
	all->buckets = must(calloc(all->n_buckets, sizeof *all->buckets));
	for (struct llvm_module *m = all->newest; m; m = m->older) {
		struct llvm_module **bucket = bucket_of(all, name_of(m));

		m->next = *bucket;
		*bucket = m;
	}
}

/*
 * Returns the canonical form of @name: upper-case digits for a build-id, with a leading zero if
 * their number is odd. The text is valid until the next call.
 */
static struct llvm_text canonical_name(struct llvm_modules *all, struct llvm_text name,
				       bool is_build_id)
{
	const size_t padding = name.size & 1;
	char *digits;

	if (!is_build_id)
		return name;
	digits = must(realloc(all->digits, name.size + padding + 1));
	memset(digits, '0', padding);
	for (size_t i = 0; i < name.size; i++) {
		const char c = name.data[i];

		digits[padding + i] = c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
	}
	all->digits = digits;
	return (struct llvm_text){ digits, name.size + padding };
}

void llvm_modules_init(struct llvm_modules *all, struct fathom *session,
		       const struct llvm_options *options)
{
	all->session = session;
	all->options = options;
	all->batch = 1;
	grow(all);
}

static void close_module(struct llvm_modules *all, struct llvm_module *m)
{
	struct llvm_module **at = bucket_of(all, name_of(m));

	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	unlink_module(all, m);
	all->n--;
	fathom_target_release(m->target);
	free(m->objects);
	free(m->code.addresses);
	free(m->data.addresses);
	free(m->error);
	free(m->name);
	free(m);
}

void llvm_modules_deinit(struct llvm_modules *all)
{
	while (all->oldest)
		close_module(all, all->oldest);
	free(all->buckets);
	free(all->digits);
}

struct llvm_module *llvm_modules_find(struct llvm_modules *all, struct llvm_text name,
				      bool is_build_id)
{
	const struct llvm_text wanted = canonical_name(all, name, is_build_id);
	struct llvm_module *m = *bucket_of(all, wanted);

	while (m && (m->is_build_id != is_build_id || m->name_size != wanted.size ||
		     memcmp(m->name, wanted.data, wanted.size) != 0))
		m = m->next;
	if (m) {
		unlink_module(all, m);
		link_newest(all, m);
	}
	return m;
}

/* Returns whether a module must be closed before another is opened. */
static bool is_over(const struct llvm_modules *all)
{
	struct fathom_usage usage;

	fathom_get_usage(all->session, &usage);
	/* Leave room for the next module. */
	return all->n >= MAX_MODULES || usage.memory_used > usage.memory_budget / 4 * 3 ||
	       usage.memory_used > all->options->cache_size;
}

bool llvm_modules_are_full(const struct llvm_modules *all)
{
	return all->oldest && all->oldest->batch == all->batch && is_over(all);
}

struct llvm_module *llvm_modules_open(struct llvm_modules *all, struct llvm_text name,
				      bool is_build_id)
{
	const struct llvm_text wanted = canonical_name(all, name, is_build_id);
	struct llvm_module *m = must(calloc(1, sizeof *m));
	struct llvm_module **bucket;

	while (all->oldest && all->oldest->batch != all->batch && is_over(all))
		close_module(all, all->oldest);
	if (all->n == all->n_buckets)
		grow(all);
	m->name_size = wanted.size;
	m->name = must(calloc(1, wanted.size + 1));
	memcpy(m->name, wanted.data, wanted.size);
	m->is_build_id = is_build_id;
	bucket = bucket_of(all, wanted);
	m->next = *bucket;
	*bucket = m;
	link_newest(all, m);
	all->n++;
	open_module(all, m);
	return m;
}

struct llvm_module *llvm_modules_asked(const struct llvm_modules *all)
{
	return all->newest && all->newest->batch == all->batch ? all->newest : NULL;
}

struct llvm_module *llvm_modules_next_asked(const struct llvm_modules *all,
					    const struct llvm_module *m)
{
	return m->older && m->older->batch == all->batch ? m->older : NULL;
}

static void forget(struct llvm_lookup *l)
{
	fathom_answers_free(l->answers);
	l->answers = NULL;
}

void llvm_modules_end_batch(struct llvm_modules *all)
{
	for (struct llvm_module *m = llvm_modules_asked(all); m;
	     m = llvm_modules_next_asked(all, m)) {
		forget(&m->code);
		forget(&m->data);
	}
	all->batch++;
}
