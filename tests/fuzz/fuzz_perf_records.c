/* SPDX-License-Identifier: MIT */
/*
 * Records of perf events, one after the other, each with its size before it: whatever they hold,
 * what is told of them lies in them, and threads and maps stay as many as the records.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "host/profile/perf_registers.h"
#include "host/profile/record_kernel.h"
#include "host/profile/record_threads.h"

static void use_bytes(const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += p[i];
	fuzz_use(sum);
}

static void use_sample(const struct fathom_perf_record *r)
{
	/* Without the names of the kernel's functions, which are not read here. */
	struct fathom_record_kernel kernel = { .is_tried = true };
	struct fathom_registers registers;
	char reason[16];
	bool is_disk;

	use_bytes(r->sample.kernel, (size_t)r->sample.n_kernel * 8);
	use_bytes(r->sample.stack.data, r->sample.stack.size);
	if (fathom_perf_registers_read(r->sample.registers, r->sample.missing, r->sample.abi,
				       &registers))
		fuzz_use(registers.pc + registers.sp);
	fuzz_use(r->sample.id);
	if (fathom_record_kernel_reason(&kernel, r, reason, sizeof reason, &is_disk) || is_disk ||
	    strcmp(reason, "[kernel]") != 0)
		abort();
	fathom_record_kernel_deinit(&kernel);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint8_t flags = fuzz_byte(&f);
	const struct fathom_perf_tracepoint tracepoint = { .flags_at = 2, .tid_at = 24 };
	struct fathom_key_map ids = { 0 };
	const struct fathom_perf_setup setup = { .is_kernel_hidden = flags & 1,
						 .has_counts = flags & 2,
						 .wakings = &tracepoint,
						 .waking_ids = flags & 4 ? &ids : NULL };
	uint32_t *number = fathom_key_map_at(&ids, 99);
	struct fathom_record_threads threads = { 0 };
	size_t n = 0;

	if (!number)
		abort();
	*number = 1;
	while (f.p < f.end) {
		const struct fathom_bytes bytes = fuzz_section(&f);
		uint8_t *copy = malloc(bytes.size ? bytes.size : 1);
		struct fathom_perf_record r;

		if (!copy)
			abort();
		if (bytes.size)
			memcpy(copy, bytes.data, bytes.size);
		fathom_perf_record_parse(copy, bytes.size, &setup, &r);
		n += 2; /* a fork tells of a parent, too */
		if (r.type == FATHOM_PERF_WAKING)
			fuzz_use((uint64_t)r.waking.tid + r.waking.is_interrupt);
		else if (r.type == PERF_RECORD_SAMPLE)
			use_sample(&r);
		else if (fathom_record_threads_take(&threads, &r))
			abort();
		if (threads.threads.n > n || threads.processes.n > n)
			abort();
		free(copy);
	}
	fathom_record_threads_forget(&threads, UINT64_MAX);
	fathom_record_threads_deinit(&threads);
	fathom_key_map_deinit(&ids);
	return 0;
}
