/* SPDX-License-Identifier: MIT */
/*
 * The FDEs of one module: many threads find the same ones with the same CIEs, by the table of
 * .eh_frame_hdr and by our index; all memory is counted and given back. ./dev tsan watches.
 */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/module/module.h"

#define N_THREADS 8
#define MOST      200000

struct opened {
	struct fathom *session;
	struct fathom_search_paths *paths;
	struct fathom_notes notes;
	struct fathom_module *module;
	uint64_t used; /* before the module was opened */
	uint64_t *low; /* one for each FDE that has code */
	size_t n;
};

/* Opens the command itself, which is C: none of its functions has a personality. */
static void open_module(struct opened *o)
{
	const struct fathom_options options = { .size = sizeof options,
						.flags = FATHOM_NO_CACHE,
						.threads = 1 };
	const char *build = getenv("BUILD");
	struct fathom_object *object;
	char path[4096];

	*o = (struct opened){ .session = NULL };
	assert_int_equal(fathom_create(&options, &o->session, NULL), 0);
	assert_int_equal(fathom_search_paths_create(o->session, NULL, &o->paths, NULL), 0);
	o->used = atomic_load(&o->session->memory.used);
	(void)snprintf(path, sizeof path, "%s/fathom", build ? build : ".");
	assert_int_equal(fathom_object_open(&o->session->memory, path, &object, NULL), 0);
	assert_int_equal(fathom_module_create_alone(o->paths, object, &o->notes, &o->module), 0);
}

/* Lists the FDEs by a walk, without look-ups. */
static void list_all(struct opened *o)
{
	const struct fathom_cfi cfi = fathom_unwind_tables_section(&o->module->unwind, 0);
	struct fathom_cfi_reader r;
	struct fathom_cfi_entry e;
	struct fathom_cie cie;
	struct fathom_fde fde;

	o->low = malloc(MOST * sizeof *o->low);
	assert_non_null(o->low);
	fathom_cfi_reader_init(&r, &cfi);
	while (fathom_cfi_next(&r, &e, NULL) == FATHOM_OK && o->n < MOST) {
		if (e.is_cie)
			continue;
		assert_int_equal(fathom_cie_read(&cfi, e.cie_off, &cie), 0);
		assert_int_equal(fathom_fde_read(&e, &cie, &fde), 0);
		if (fde.low < fde.high)
			o->low[o->n++] = fde.low;
	}
	assert_true(o->n > 1000);
}

static void close_module(struct opened *o)
{
	free(o->low);
	fathom_module_close(o->module);
	fathom_notes_deinit(&o->notes);
	assert_int_equal(atomic_load(&o->session->memory.used), o->used);
	fathom_search_paths_release(o->paths);
	fathom_destroy(o->session);
}

struct asker {
	struct opened *o;
	const struct fathom_cie **cie; /* one for each FDE */
	size_t wrong;
	size_t first; /* index of the FDE that is asked for first */
};

static void *ask(void *arg)
{
	struct asker *a = arg;

	for (size_t k = 0; k < a->o->n; k++) {
		const size_t i = (k + a->first) % a->o->n;
		struct fathom_fde fde;

		if (fathom_unwind_tables_find(&a->o->module->unwind, a->o->low[i], &fde) ||
		    fde.low != a->o->low[i])
			a->wrong++;
		else
			a->cie[i] = fde.cie;
	}
	return NULL;
}

static void ask_all(struct opened *o)
{
	struct asker asker[N_THREADS];
	pthread_t thread[N_THREADS];

	for (size_t t = 0; t < N_THREADS; t++) {
		asker[t] = (struct asker){ o, calloc(o->n, sizeof(void *)), 0, t * o->n / 2 };
		assert_non_null(asker[t].cie);
		assert_int_equal(pthread_create(&thread[t], NULL, ask, &asker[t]), 0);
	}
	for (size_t t = 0; t < N_THREADS; t++) {
		(void)pthread_join(thread[t], NULL);
		assert_int_equal(asker[t].wrong, 0);
		/* Each CIE is kept once, whoever read it first. */
		assert_memory_equal(asker[t].cie, asker[0].cie, o->n * sizeof(void *));
	}
	for (size_t i = 1; i < o->n; i++)
		if (asker[0].cie[i]->off == asker[0].cie[0]->off)
			assert_ptr_equal(asker[0].cie[i], asker[0].cie[0]);
	for (size_t t = 0; t < N_THREADS; t++)
		free(asker[t].cie);
}

static void test_by_header(void **state)
{
	struct opened o;

	(void)state;
	open_module(&o);
	assert_true(o.module->unwind.header.size > 0);
	list_all(&o);
	ask_all(&o);
	assert_null(atomic_load(&o.module->unwind.index[0]));
	close_module(&o);
}

static void test_by_table(void **state)
{
	const struct fathom_bounds_list *list;
	struct opened o;

	(void)state;
	open_module(&o);
	o.module->unwind.header.size = 0;
	list_all(&o);
	ask_all(&o);
	list = o.module->unwind.bounds.all(&o.module->unwind.bounds);
	assert_int_equal(list->n, o.n);
	close_module(&o);
}

/* Over budget no CIE is kept, and unwinding fails; bounds do not need a kept one. */
static void test_over_budget(void **state)
{
	struct fathom_range range;
	struct fathom_fde fde;
	struct opened o;

	(void)state;
	open_module(&o);
	list_all(&o);
	o.session->memory.budget = 0;
	assert_int_equal(fathom_unwind_tables_find(&o.module->unwind, o.low[5], &fde),
			 FATHOM_E_LIMIT);
	assert_true(o.module->unwind.bounds.at(&o.module->unwind.bounds, o.low[5], &range));
	assert_int_equal(range.low, o.low[5]);
	assert_null(atomic_load(&o.module->unwind.cies));
	o.session->memory.budget = UINT64_MAX;
	assert_int_equal(fathom_unwind_tables_find(&o.module->unwind, o.low[5], &fde), 0);
	assert_int_equal(fde.low, range.low);
	assert_int_equal(fde.high, range.high);
	close_module(&o);
}

/* A table without the last function leads to the one before it. */
static void test_table_lacks_one(void **state)
{
	const struct fathom_bounds_list *list;
	struct fathom_unwind_tables *u;
	struct fathom_range range;
	uint64_t last;
	struct opened o;
	uint8_t *header;
	uint32_t count;

	(void)state;
	open_module(&o);
	u = &o.module->unwind;
	header = malloc((size_t)u->header.size);
	assert_non_null(header);
	memcpy(header, u->header.data, (size_t)u->header.size);
	assert_int_equal(header[2], DW_EH_PE_udata4);
	memcpy(&count, header + 8, sizeof count);
	count--;
	memcpy(header + 8, &count, sizeof count);
	u->header.data = header;
	list_all(&o);
	last = o.low[0];
	for (size_t i = 1; i < o.n; i++)
		last = o.low[i] > last ? o.low[i] : last;
	assert_true(u->bounds.at(&u->bounds, last, &range));
	assert_int_equal(range.low, last);
	list = u->bounds.all(&u->bounds);
	assert_int_equal(list->n, o.n);
	assert_true(list->ranges[list->n - 1].value == range.high);
	assert_false(u->bounds.at(&u->bounds, range.high, &range));
	close_module(&o);
	free(header);
}

/* "zR" with a pointer encoding: of the bounds of FDEs (LSB 5.0, 10.6.1). */
static fathom_err read_cie(uint8_t encoding)
{
	const uint8_t bytes[] = { 16,  0, 0, 0,    0,  0, 0,        0, 1, 'z',
				  'R', 0, 1, 0x78, 16, 1, encoding, 0, 0, 0 };
	const struct fathom_cfi cfi = {
		.section = { bytes, sizeof bytes }, .svma = 0x1000, .address_size = 8, .is_eh = true
	};
	struct fathom_cie cie;
	const fathom_err err = fathom_cie_read(&cfi, 0, &cie);

	if (!err)
		assert_int_equal(cie.pointer_encoding, encoding);
	return err;
}

static void test_indirect_bounds(void **state)
{
	(void)state;
	assert_int_equal(read_cie(DW_EH_PE_pcrel | DW_EH_PE_sdata4), 0);
	assert_int_equal(read_cie(DW_EH_PE_absptr), 0);
	assert_int_equal(read_cie(DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4),
			 FATHOM_E_UNSUPPORTED);
	assert_int_equal(read_cie(DW_EH_PE_indirect), FATHOM_E_UNSUPPORTED);
}

/* The head of a table with one function, which is at the table itself, and its FDE. */
static fathom_err search(uint8_t encoding, uint64_t *ret_off)
{
	const uint8_t header[] = { 1, encoding, DW_EH_PE_udata4, DW_EH_PE_datarel | DW_EH_PE_sdata4,
				   /* section: 0x1100 - 0x1004 */
				   0xfc, 0, 0, 0, 1, 0, 0, 0,
				   /* function at 0x1000, FDE at 0x1110 */
				   0, 0, 0, 0, 0x10, 1, 0, 0 };
	const uint8_t section[0x20] = { 0 };
	const struct fathom_cfi cfi = { .section = { section, sizeof section },
					.svma = 0x1100,
					.address_size = 8,
					.is_eh = true };

	return fathom_cfi_search(&cfi, (struct fathom_bytes){ header, sizeof header }, 0x1000,
				 0x1001, ret_off);
}

static void test_indirect_section(void **state)
{
	uint64_t off = 0;

	(void)state;
	assert_int_equal(search(DW_EH_PE_pcrel | DW_EH_PE_sdata4, &off), 0);
	assert_int_equal(off, 0x10);
	assert_int_equal(search(DW_EH_PE_indirect | DW_EH_PE_pcrel | DW_EH_PE_sdata4, &off),
			 FATHOM_E_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_header),       cmocka_unit_test(test_by_table),
		cmocka_unit_test(test_over_budget),     cmocka_unit_test(test_table_lacks_one),
		cmocka_unit_test(test_indirect_bounds), cmocka_unit_test(test_indirect_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
