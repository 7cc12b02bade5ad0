/* SPDX-License-Identifier: MIT */
/*
 * Records of system calls, in all dialects. The first byte chooses: bytes that claim to be a
 * record; or a call whose memory is hostile and changes while it is captured. What is captured is a
 * whole record; its text is the same when it is asked for its length only, or twice.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "host/syscalls/syscall_capture.h"

#define TEXT (1u << 21)

static bool name_fd(void *data, int32_t fd, bool after, struct fathom_fd_name *ret)
{
	(void)data;
	fathom_copy_cstr(ret->path, sizeof ret->path, after ? "after" : "/a (deleted)");
	ret->path_size = strlen(ret->path);
	memcpy(ret->detail, "UNIX:[1,\0/b", 11);
	ret->detail_size = fd & 2 ? 11 : 0;
	return fd & 1;
}

static bool name_code(void *data, uint64_t avma, struct fathom_text *out)
{
	(void)data;
	fathom_text_cstr(out, "function");
	return avma & 1;
}

static void print(const struct fathom_syscall_record *r,
		  const struct fathom_syscall_options *options)
{
	static char buf[2][TEXT];
	static char dump[TEXT];
	struct fathom_text none = { 0 };
	struct fathom_syscall_line line;

	fathom_syscall_format(r, options, &none, NULL);
	for (int i = 0; i < 2; i++) {
		struct fathom_text text = text_init(buf[i], TEXT);

		fathom_syscall_format(r, options, &text, &line);
		fathom_text_end(&text);
		/* A deleted file's name is told from the text, which must be there. */
		if (!options->name_fd && text.len != none.len)
			abort();
		if (line.n > 6 || line.entry > line.exit || line.exit > line.result ||
		    line.result > text.len)
			abort();
		for (unsigned k = 0; k < line.n; k++)
			if (line.args[k].begin > line.args[k].end)
				abort();
		text = text_init(dump, TEXT);
		fathom_syscall_format_dump(r, options, &text);
	}
	if (memcmp(buf[0], buf[1], none.len < TEXT ? none.len : TEXT - 1))
		abort();
}

/* Captures a call of which all is told by the input, then prints it. */
static void capture(struct fuzz *f, const struct fathom_syscall_options *options)
{
	static const uint32_t machines[] = { EM_X86_64, EM_386, EM_AARCH64, EM_ARM };
	static uint8_t bytes[FATHOM_SYSCALL_RECORD_MAX] __attribute__((aligned(8)));
	static struct fuzz_changing changing;
	const uint8_t first = fuzz_byte(f);
	struct fathom_syscall_call call = { .machine = machines[first & 3],
					    .format = (uint16_t)(first >> 2) };
	struct fathom_syscall_record r, again;
	struct fathom_reader memory;
	int64_t result;

	call.number = fuzz_byte(f) | (uint64_t)fuzz_byte(f) << 8;
	call.sp = 0x10000;
	for (int i = 0; i < 6; i++)
		call.args[i] = fuzz_byte(f) & 1 ? UINT64_C(0x10000) + fuzz_byte(f) : fuzz_number(f);
	result = (int16_t)(fuzz_byte(f) | fuzz_byte(f) << 8);
	memory = fuzz_changing_fill(&changing, 0x10000, f);
	if (!fathom_syscall_capture_entry(&call, options, &memory, bytes, sizeof bytes, &r))
		abort();
	print(&r, options);
	fathom_syscall_capture_exit(&r, result, options, &memory);
	if (!fathom_syscall_record_open(r.bytes, r.n, &again))
		abort();
	print(&again, options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = fuzz_init(data, size);
	const uint8_t flags = fuzz_byte(&f);
	const uint8_t more = fuzz_byte(&f);
	const struct fathom_syscall_options options = {
		.string_limit = more & 1   ? 32
				: more & 2 ? 5000
					   : more,
		.dialect = flags & 1 ? FATHOM_SYSCALL_ARROW : FATHOM_SYSCALL_STRACE,
		.constants = (enum fathom_syscall_constants)((flags >> 1 & 3) % 3),
		.hex = (flags >> 3 & 3) % 3,
		.is_verbose = flags >> 5 & 1,
		.name_fd = more & 0x40 ? name_fd : NULL,
		.name_code = more & 0x80 ? name_code : NULL,
	};
	struct fathom_syscall_record r;
	uint8_t *copy;

	if (flags & 0x40) {
		capture(&f, &options);
		return 0;
	}
	/* A copy of its own size, so that reads behind it are seen. */
	size = (size_t)(f.end - f.p);
	copy = malloc(size ? size : 1);
	if (!copy)
		abort();
	memcpy(copy, f.p, size);
	if (fathom_syscall_record_open(copy, size, &r))
		print(&r, &options);
	free(copy);
	return 0;
}
