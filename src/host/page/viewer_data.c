/* SPDX-License-Identifier: MIT */
#include "host/page/viewer_data.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/exchange/exporting.h"
#include "host/page/html_file.h"
#include "safe/base/error.h"

static uint32_t text(struct fathom_page_data *d, const char *s)
{
	return fathom_page_text(&d->texts, s);
}

static void put(struct fathom_page_data *d, unsigned column, uint64_t value)
{
	fathom_page_put(&d->columns[column], value);
}

void fathom_page_fact(struct fathom_page_data *d, size_t side, const char *key, const char *format,
		      ...)
{
	char *value = NULL;
	va_list list;

	va_start(list, format);
	if (vasprintf(&value, format, list) < 0)
		value = NULL;
	va_end(list);
	if (!value) {
		d->no_memory = true;
		return;
	}
	if (*value) {
		put(d, FATHOM_PAGE_FACT_SIDE, side);
		put(d, FATHOM_PAGE_FACT_KEY, text(d, key));
		put(d, FATHOM_PAGE_FACT_TEXT, text(d, value));
	}
	free(value);
}

uint32_t fathom_page_function(struct fathom_page_data *d, const struct fathom_page_function *f)
{
	const uint32_t linked = text(d, f->linkage_name ? f->linkage_name : f->name);
	uint32_t *number = fathom_key_map_at(&d->by_name, (uint64_t)linked << 32 | f->module_key);

	if (!number || d->texts.no_memory) {
		d->no_memory = true;
		return 0;
	}
	if (*number != FATHOM_KEY_NEW)
		return *number;
	*number = d->n_functions++;
	put(d, FATHOM_PAGE_FUNCTION_NAME, text(d, f->name));
	put(d, FATHOM_PAGE_FUNCTION_LINKAGE, linked);
	put(d, FATHOM_PAGE_FUNCTION_MODULE, text(d, f->module));
	put(d, FATHOM_PAGE_FUNCTION_KIND, f->kind);
	return *number;
}

void fathom_page_thread(struct fathom_page_data *d, size_t side, int32_t pid, int32_t tid,
			const char *name, const char *process)
{
	put(d, FATHOM_PAGE_THREAD_SIDE, side);
	put(d, FATHOM_PAGE_THREAD_PID, (uint32_t)pid);
	put(d, FATHOM_PAGE_THREAD_TID, (uint32_t)tid);
	put(d, FATHOM_PAGE_THREAD_NAME, text(d, name));
	put(d, FATHOM_PAGE_THREAD_PROCESS, text(d, process));
}

static void put_samples(struct fathom_page_data *d)
{
	for (size_t i = 0; i < d->samples.n; i++) {
		const struct fathom_page_sample *s = &d->samples.items[i];

		fathom_page_put_delta(&d->columns[FATHOM_PAGE_SAMPLE_NS], s->ns);
		put(d, FATHOM_PAGE_SAMPLE_WEIGHT, s->weight);
		put(d, FATHOM_PAGE_SAMPLE_THREAD, s->thread);
		fathom_page_put_delta(&d->columns[FATHOM_PAGE_SAMPLE_NODE],
				      d->tree.items[s->node].number);
		put(d, FATHOM_PAGE_SAMPLE_PLACE, s->place);
		put(d, FATHOM_PAGE_SAMPLE_PART, s->part);
		put(d, FATHOM_PAGE_SAMPLE_COUNT, s->n);
		if (d->samples.are_calls)
			fathom_page_put_delta(&d->columns[FATHOM_PAGE_SAMPLE_MORE],
					      s->ns - s->begin - s->weight);
	}
}

fathom_err fathom_page_data_check(const struct fathom_page_data *d, struct fathom_errinfo *reterr)
{
	bool no_memory =
		d->no_memory || d->tree.no_memory || d->samples.no_memory || d->texts.no_memory;

	for (unsigned i = 0; i < FATHOM_PAGE_COLUMNS; i++)
		no_memory |= d->columns[i].no_memory;
	if (no_memory)
		return fathom_fail_memory(reterr);
	return d->tree.is_too_large || d->samples.is_too_large
		       ? fathom_fail_by(reterr, FATHOM_E_LIMIT, FATHOM_CAUSE_BUDGET,
					"the page does not fit the memory budget")
		       : FATHOM_OK;
}

void fathom_page_data_end(struct fathom_page_data *d)
{
	fathom_page_tree_number(&d->tree);
	if (d->tree.no_memory)
		return;
	fathom_page_tree_put(&d->tree, &d->columns[FATHOM_PAGE_NODE_PARENT],
			     &d->columns[FATHOM_PAGE_NODE_FUNCTION]);
	fathom_page_samples_sort(&d->samples);
	put_samples(d);
	fathom_page_put_texts(&d->columns[FATHOM_PAGE_TEXTS], &d->texts);
}

fathom_err fathom_page_data_write(const struct fathom_page_data *d,
				  int (*write)(void *data, const void *bytes, size_t n), void *data,
				  struct fathom_errinfo *reterr)
{
	struct fathom_page_file f = { .write = write, .data = data };

	fathom_page_file_begin(&f);
	for (unsigned i = 0; i < FATHOM_PAGE_COLUMNS; i++)
		fathom_page_file_put(&f, &d->columns[i]);
	fathom_page_file_end(&f);
	if (f.gzip.has_failed)
		return fathom_export_fail_write(reterr);
	return f.gzip.no_memory ? fathom_fail_memory(reterr) : FATHOM_OK;
}

void fathom_page_data_deinit(struct fathom_page_data *d)
{
	for (unsigned i = 0; i < FATHOM_PAGE_COLUMNS; i++)
		fathom_page_column_deinit(&d->columns[i]);
	fathom_page_texts_deinit(&d->texts);
	fathom_page_tree_deinit(&d->tree);
	fathom_page_samples_deinit(&d->samples);
	fathom_key_map_deinit(&d->by_name);
}
