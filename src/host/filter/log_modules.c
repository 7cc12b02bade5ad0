/* SPDX-License-Identifier: MIT */
#include "host/filter/log_modules.h"

#include <stdlib.h>

#include "host/base/hash.h"
#include "host/base/path.h"
#include "host/file/debug_search.h"
#include "host/file/debuginfod.h"
#include "host/module/module.h"
#include "safe/base/hex.h"

/* Files of a log that stay open. */
#define MAX_OPEN 512

/* Modules of a log that are remembered, and what it has shown of them. */
#define MAX_MODULES (1 << 18)

/* Functions of the kernel begin at multiples of this, at the most. */
#define MAX_PADDING 64

/* Bytes of the longest build-id. */
#define MAX_BUILD_ID 64

/* Reads a build-id in hexadecimal into @bytes; none if it is too long, or has half a byte. */
static struct fathom_bytes read_build_id(struct fathom_str text, uint8_t bytes[MAX_BUILD_ID])
{
	if (text.size % 2 || text.size > 2 * MAX_BUILD_ID ||
	    !fathom_hex_take(text.data, bytes, text.size / 2, fathom_hex_digit))
		return (struct fathom_bytes){ NULL, 0 };
	return (struct fathom_bytes){ bytes, text.size / 2 };
}

/* Returns whether the hexadecimal @text is @id. */
static bool is_build_id(struct fathom_str text, struct fathom_bytes id)
{
	uint8_t bytes[MAX_BUILD_ID];
	const struct fathom_bytes read = read_build_id(text, bytes);

	return read.size && bytes_equal(read, id);
}

/* Takes @t, which it holds, as the file of @module, unless it is another's; returns whether. */
static bool take(struct fathom_log_module *module, struct fathom_target *t)
{
	const struct fathom_bytes id =
		t->stated ? t->stated->main->build_id : (struct fathom_bytes){ NULL, 0 };

	if (t->kind == FATHOM_TARGET_FILE && module->build_id.size && (id.size || !t->stated) &&
	    !is_build_id(module->build_id, id)) {
		module->reason = FATHOM_REASON_BUILD_ID_MISMATCH;
	} else if (t->kind == FATHOM_TARGET_FILE) {
		module->target = t;
		module->is_by_path = !module->build_id.size || !id.size;
		return true;
	}
	fathom_target_release(t);
	return false;
}

/* Tries the file at @path; returns whether it is the module's. */
static bool try_path(const struct fathom_log_modules *m, struct fathom_log_module *module,
		     const char *path)
{
	const struct fathom_target_options options = {
		.size = sizeof options,
		.sysroot = *m->paths->sysroot ? m->paths->sysroot : NULL,
		.debug_dirs = (const char *const *)m->paths->debug_dirs,
	};
	struct fathom_target *t;

	return fathom_target_open_file(m->session, path, &options, &t, NULL) == FATHOM_OK &&
	       take(module, t);
}

/* Tries the files of the build-id in the debug directories: the module's own, or its debug file. */
static bool try_build_id(const struct fathom_log_modules *m, struct fathom_log_module *module)
{
	static const char *const ends[] = { "", ".debug" };
	uint8_t bytes[MAX_BUILD_ID];
	const struct fathom_bytes id = read_build_id(module->build_id, bytes);
	struct fathom_path path;

	for (char **dir = m->paths->debug_dirs; *dir; dir++)
		for (size_t i = 0; i < 2; i++)
			if (fathom_debugfile_id_path(m->paths->sysroot, *dir, id, ends[i], &path) &&
			    try_path(m, module, path.text))
				return true;
	return false;
}

/* Asks the stores for the index of the build-id. */
static bool try_stores(const struct fathom_log_modules *m, struct fathom_log_module *module)
{
	enum fathom_reason reason = (enum fathom_reason)module->reason;
	uint8_t bytes[MAX_BUILD_ID];
	const struct fathom_bytes id = read_build_id(module->build_id, bytes);
	struct fathom_target *t = NULL;

	if (id.size)
		(void)fathom_store_list_find(&m->stores, m->paths, id, true, &t, &reason, NULL);
	module->reason = (uint8_t)reason;
	return t && take(module, t);
}

/* Tries the name as a path. */
static bool try_name(const struct fathom_log_modules *m, struct fathom_log_module *module)
{
	const struct fathom_str name = module->name;
	struct fathom_path path;

	if (!name.size || !memchr(name.data, '/', name.size))
		return false;
	if (*name.data == '/' && *m->paths->sysroot &&
	    fathom_path_format(&path, "%s%.*s", m->paths->sysroot, (int)name.size, name.data) &&
	    try_path(m, module, path.text))
		return true;
	return fathom_path_format(&path, "%.*s", (int)name.size, name.data) &&
	       try_path(m, module, path.text);
}

/* Tries the last part of the name in the module directories; that of a kernel module is NAME.ko. */
static bool try_dirs(const struct fathom_log_modules *m, struct fathom_log_module *module,
		     bool is_kernel)
{
	const struct fathom_str name = fathom_log_last_part(module->name);
	struct fathom_path path;

	for (char **dir = m->module_dirs; name.size && dir && *dir; dir++)
		if (fathom_path_format(&path, "%s/%.*s%s", *dir, (int)name.size, name.data,
				       is_kernel ? ".ko" : "") &&
		    try_path(m, module, path.text))
			return true;
	return false;
}

/* Asks the servers of debuginfod, if the session has any, for the file of the build-id. */
static bool try_servers(const struct fathom_log_modules *m, struct fathom_log_module *module)
{
	uint8_t bytes[MAX_BUILD_ID];
	const struct fathom_bytes id = read_build_id(module->build_id, bytes);
	bool is_found = false;
	char *path;

	if ((m->session->flags & FATHOM_DEBUGINFOD) && id.size &&
	    fathom_debuginfod_find(m->session, id, &path, NULL) == FATHOM_OK) {
		is_found = try_path(m, module, path);
		free(path);
	}
	return is_found;
}

/* Looks for the file of @module. */
static void open_module(struct fathom_log_modules *m, struct fathom_log_module *module)
{
	const bool is_named = module->name.size || module->build_id.size;
	const bool is_kernel = module->is_kernel;

	module->is_open = true;
	module->reason = is_named ? FATHOM_REASON_NO_FILE : FATHOM_REASON_NO_BASE;
	if (module->name.size && memchr(module->name.data, '\0', module->name.size))
		return;
	if (is_named &&
	    ((module->build_id.size && (try_build_id(m, module) || try_stores(m, module))) ||
	     try_name(m, module) || try_dirs(m, module, is_kernel)))
		return;
	if (m->target && (!is_named || (is_kernel && m->target->kind == FATHOM_TARGET_KERNEL)))
		module->target = fathom_target_acquire(m->target);
	else if (!m->target || m->target->kind != FATHOM_TARGET_FILE ||
		 !str_equal(fathom_log_last_part(module->name), m->target_name) ||
		 !take(module, fathom_target_acquire(m->target)))
		(void)try_servers(m, module);
}

/* Adds the module of @number, with texts of our own. */
static fathom_err add(struct fathom_log_modules *m, const struct fathom_log_number *number)
{
	struct fathom_log_module module = { .is_kernel = number->symbol_size != 0 };

	module.name = (struct fathom_str){ fathom_arena_strdup(&m->texts, number->module),
					   number->module.size };
	module.build_id = (struct fathom_str){ fathom_arena_strdup(&m->texts, number->build_id),
					       number->build_id.size };
	if (!module.name.data || !module.build_id.data || !fathom_array_push(&m->modules, module))
		return FATHOM_E_MEMORY;
	return FATHOM_OK;
}

fathom_err fathom_log_modules_find(struct fathom_log_modules *m,
				   const struct fathom_log_number *number, size_t *ret,
				   struct fathom_errinfo *reterr)
{
	/* A log cannot know this address, so it cannot choose names of one hash. */
	uint64_t key = fathom_hash_bytes((uintptr_t)m + number->module.size, number->module.data,
					 number->module.size);
	struct fathom_log_module *module;
	uint32_t *at;

	key = fathom_hash_bytes(key, number->build_id.data, number->build_id.size);
	/* Other names with this hash have the next keys. */
	for (;; key++) {
		at = fathom_key_map_at(&m->numbers, key);
		if (!at)
			return fathom_fail_memory(reterr);
		if (*at == FATHOM_KEY_NEW) {
			if (add(m, number))
				return fathom_fail_memory(reterr);
			*at = (uint32_t)(m->modules.n - 1);
		}
		module = &m->modules.items[*at];
		if (str_equal(module->name, number->module) &&
		    str_equal(module->build_id, number->build_id))
			break;
	}
	if (!module->is_open) {
		open_module(m, module);
		m->n_open += module->target != NULL;
	}
	*ret = *at;
	return FATHOM_OK;
}

static void free_tables(struct fathom_log_module *module)
{
	if (module->symbols)
		fathom_kernel_symbols_deinit(module->symbols);
	free(module->symbols);
	module->symbols = NULL;
	for (size_t i = 0; i < 2; i++) {
		if (module->sites[i])
			fathom_patch_sites_deinit(module->sites[i]);
		free(module->sites[i]);
		module->sites[i] = NULL;
	}
}

fathom_err fathom_log_module_sites(struct fathom_log_module *module, bool is_kernel,
				   const struct fathom_patch_sites **ret,
				   struct fathom_errinfo *reterr)
{
	struct fathom_patch_sites **sites = &module->sites[is_kernel];

	if (!*sites) {
		*sites = calloc(1, sizeof **sites);
		if (!*sites || fathom_patch_sites_read(module->target->stated, is_kernel, *sites)) {
			free_tables(module);
			return fathom_fail_memory(reterr);
		}
	}
	*ret = *sites;
	return FATHOM_OK;
}

fathom_err fathom_log_module_has_size(struct fathom_log_module *module, uint64_t svma,
				      uint64_t stated, uint64_t size, bool *ret,
				      struct fathom_errinfo *reterr)
{
	const struct fathom_module *file = module->target->stated;

	*ret = !stated || size == stated;
	if (*ret)
		return FATHOM_OK;
	/* The running kernel: padding is all that the file's size lacks. */
	if (!file) {
		*ret = size > stated && size - stated < MAX_PADDING;
		return FATHOM_OK;
	}
	if (!module->symbols) {
		module->symbols = calloc(1, sizeof *module->symbols);
		if (!module->symbols || fathom_kernel_symbols_read(file, module->symbols)) {
			free_tables(module);
			return fathom_fail_memory(reterr);
		}
	}
	*ret = fathom_kernel_symbols_agree(module->symbols, file, svma, stated, size);
	return FATHOM_OK;
}

/* Closes all files. */
static void close_all(struct fathom_log_modules *m)
{
	for (size_t i = 0; i < m->modules.n; i++) {
		struct fathom_log_module *module = &m->modules.items[i];

		if (!module->target)
			continue;
		free_tables(module);
		fathom_target_release(module->target);
		module->target = NULL;
		module->is_open = false;
	}
	m->n_open = 0;
}

static void clear(struct fathom_log_modules *m)
{
	close_all(m);
	fathom_array_free(&m->modules);
	fathom_key_map_deinit(&m->numbers);
	m->numbers = (struct fathom_key_map){ NULL, 0, 0 };
	fathom_arena_deinit(&m->texts);
	m->texts = (struct fathom_arena){ NULL, 0 };
}

void fathom_log_modules_trim(struct fathom_log_modules *m)
{
	if (m->n_open > MAX_OPEN)
		close_all(m);
	if (m->modules.n > MAX_MODULES)
		clear(m);
}

void fathom_log_modules_deinit(struct fathom_log_modules *m)
{
	clear(m);
	fathom_store_list_close(&m->stores);
	fathom_dirs_free(m->module_dirs);
	fathom_search_paths_release(m->paths);
	fathom_target_release(m->target);
}
