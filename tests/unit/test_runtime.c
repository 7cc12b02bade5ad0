/* SPDX-License-Identifier: MIT */
/* What the dynamic linker and libc know of this process, read through a reader of memory. */
#include "unit.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fathom/fathom.h"
#include "host/file/file.h"
#include "host/runtime/ifunc.h"
#include "host/runtime/link_map.h"
#include "host/runtime/threads.h"
#include "host/runtime/tls.h"
#include "safe/base/peek.h"

#define THREADS 3

static _Thread_local int own = 1;

/* What a thread sees of itself. */
struct seen {
	int32_t tid;
	uintptr_t own;
};

static struct seen all[THREADS + 1];
static pthread_barrier_t barrier;

static void *be_seen(void *data)
{
	*(struct seen *)data = (struct seen){ gettid(), (uintptr_t)&own };
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static size_t read_own(void *data, uint64_t avma, void *to, size_t size)
{
	(void)data;
	return fathom_peek(avma, to, size);
}

static const struct fathom_reader reader = { .read = read_own };

/* One runtime of this process. */
struct process {
	struct fathom *session;
	struct fathom_search_paths *paths;
	struct fathom_notes notes;
	struct fathom_budget budget;
	struct fathom_runtime runtime;
};

static int add_module(struct dl_phdr_info *info, size_t size, void *data)
{
	const char *path = *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
	struct process *p = data;
	struct fathom_file *file;
	struct fathom_module *module;

	(void)size;
	if (!strchr(path, '/'))
		return 0; /* the vDSO */
	assert_int_equal(fathom_file_open(&p->session->memory, path, &file, NULL), 0);
	assert_int_equal(fathom_module_open(p->paths, file, &p->notes, &module, NULL), 0);
	assert_int_equal(fathom_runtime_add(&p->runtime, module, path, info->dlpi_addr), 0);
	return 0;
}

static int set_up(void **state)
{
	const struct fathom_options options = { .size = sizeof options, .flags = FATHOM_NO_CACHE };
	struct process *p = calloc(1, sizeof *p);

	assert_non_null(p);
	assert_int_equal(fathom_create(&options, &p->session, NULL), 0);
	assert_int_equal(fathom_search_paths_create(p->session, NULL, &p->paths, NULL), 0);
	p->budget.session = p->session;
	fathom_runtime_init(&p->runtime, &reader, &p->budget, true);
	dl_iterate_phdr(add_module, p);
	assert_int_equal(fathom_runtime_read(&p->runtime), 0);
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct process *p = *state;

	for (size_t i = 0; i < p->runtime.n_modules; i++)
		fathom_module_close(p->runtime.modules[i].module);
	fathom_runtime_deinit(&p->runtime);
	fathom_budget_give(&p->budget, atomic_load(&p->budget.counted));
	fathom_search_paths_release(p->paths);
	fathom_destroy(p->session);
	free(p);
	return 0;
}

/* Modules are listed in the order of their loading, those of the start included. */
static void test_order(void **state)
{
	const struct fathom_runtime *r = &((struct process *)*state)->runtime;
	const struct link_map *map = _r_debug.r_map;
	const struct fathom_link *links = r->links.items;

	assert_true(r->n_modules >= 3);
	assert_int_equal(r->main_program, 0);
	assert_false(r->is_unsettled);
	for (size_t i = 0; i < r->links.n; i++, map = map->l_next) {
		assert_int_equal(links[i].at, (uintptr_t)map);
		assert_int_equal(links[i].bias, map->l_addr);
		assert_int_equal(links[i].space, 0);
	}
	assert_null(map);
	for (uint32_t i = 0; i < r->n_modules; i++) {
		assert_non_null(fathom_link_of(r, i));
		assert_int_equal(fathom_link_of(r, i)->module, i);
		assert_int_equal(r->modules[i].order, i);
	}
	assert_null(fathom_link_of(r, (uint32_t)r->n_modules));
}

/* An IFUNC leads to what dlsym() finds. */
static void test_ifunc(void **state)
{
	struct fathom_runtime *r = &((struct process *)*state)->runtime;
	const struct fathom_str name = { "strlen", 6 };
	void *libc = dlopen("libc.so.6", RTLD_LAZY);
	unsigned found = 0;

	assert_non_null(libc);
	for (uint32_t i = 0; i < r->n_modules; i++) {
		struct fathom_ifunc f = { .module = i, .number = FATHOM_NONE, .name = name };
		struct fathom_symbol s;
		uint64_t avma;

		if (!fathom_dynsym_find(r->modules[i].dynsym, name, &s) ||
		    s.type != STT_GNU_IFUNC || !strstr(r->modules[i].path, "libc.so"))
			continue;
		f.svma = s.value;
		assert_int_equal(fathom_ifunc_resolved(r, &f, &avma), 0);
		assert_int_equal(avma, (uintptr_t)dlsym(libc, "strlen"));
		/* A resolver that does not exist has resolved nothing. */
		f.svma++;
		f.name = (struct fathom_str){ "no_such_name", 12 };
		assert_int_equal(fathom_ifunc_resolved(r, &f, &avma), FATHOM_E_NOT_FOUND);
		found++;
	}
	dlclose(libc);
	if (!found)
		skip(); /* a processor for which glibc has one strlen() only */
}

/* What a walk has found: how many, and how many that are not in all. */
struct found {
	unsigned n;
	unsigned wrong;
};

static bool take_thread(const struct fathom_libc_thread *t, void *data)
{
	struct found *f = data;
	bool known = false;

	for (int i = 0; i <= THREADS; i++)
		known |= all[i].tid == t->tid;
	f->n++;
	f->wrong += !known;
	return true;
}

static bool take_copy(int32_t tid, uint64_t avma, void *data)
{
	struct found *f = data;
	bool known = false;

	for (int i = 0; i <= THREADS; i++)
		known |= all[i].tid == tid && all[i].own == avma;
	f->n++;
	f->wrong += !known;
	return true;
}

static bool take_first(const struct fathom_libc_thread *t, void *data)
{
	(void)t;
	++*(unsigned *)data;
	return false;
}

/* Finds where "own" is in the TLS block of the program. */
static uint64_t find_own(const struct fathom_runtime *r)
{
	const struct fathom_symtab *t = &r->modules[0].module->symbols.table[0].view;

	for (uint32_t i = 0; i < t->count; i++) {
		struct fathom_symbol s;

		fathom_symtab_get(t, i, &s);
		if (s.type == STT_TLS && str_is(fathom_symtab_name(t, &s), "own"))
			return s.value;
	}
	fail_msg("own is no TLS symbol");
	return 0;
}

static void test_threads(void **state)
{
	struct fathom_runtime *r = &((struct process *)*state)->runtime;
	pthread_t threads[THREADS];
	struct found f = { 0, 0 };
	unsigned n = 0;

	all[THREADS] = (struct seen){ gettid(), (uintptr_t)&own };
	assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS + 1), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, be_seen, &all[i]), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(fathom_threads_walk(r, 0, take_thread, &f), 0);
	assert_int_equal(f.n, THREADS + 1 + SANITIZER_THREADS);
	assert_int_equal(f.wrong, SANITIZER_THREADS);
	f = (struct found){ 0, 0 };
	assert_int_equal(fathom_tls_walk(r, 0, find_own(r), take_copy, &f), 0);
	assert_int_equal(f.n, THREADS + 1 + SANITIZER_THREADS);
	assert_int_equal(f.wrong, SANITIZER_THREADS);
	assert_int_equal(fathom_threads_walk(r, 0, take_first, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(fathom_threads_walk(r, (uint32_t)r->n_modules, take_first, &n),
			 FATHOM_E_UNSUPPORTED);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ifunc, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("runtime", tests, NULL, NULL);
}
