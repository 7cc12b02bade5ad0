/* SPDX-License-Identifier: MIT */
/*
 * Finds struct __cxa_eh_globals of a thread (Itanium C++ ABI: Exception Handling, 2.2.2). It is a
 * thread-local variable without a name in stripped libraries, but __cxa_get_globals(), which is
 * exported, is little more than its address. So the bytes of that function are compared with the
 * few forms that compilers make of it:
 *
 *	libstdc++, shared    lea GOT-pair(%rip), %rdi; call __tls_get_addr; add $off, %rax; ret
 *	linked statically    mov %fs:0, %rax; add $-off, %rax; ret
 *	libc++abi            pthread_once(), then pthread_getspecific(key)
 *
 * ("ELF Handling For Thread-Local Storage", 4.4.6, with the sequences that linkers relax to). What
 * they lead to is proven besides: the GOT pair has the number of the module, the variable lies in
 * the module's TLS block, the key is read from the module's own data and pthread_getspecific() is
 * what is jumped to.
 *
 * Not handled: machines other than x86-64, TLS descriptors.
 */
#include "host/death/eh_globals.h"

#include "host/runtime/glibc.h"
#include "host/runtime/link_map.h"
#include "host/runtime/specific.h"
#include "host/runtime/threads.h"
#include "host/runtime/tls.h"
#include "host/symbol/dynsym.h"

/* Bytes of struct __cxa_eh_globals: a pointer, a count, padding. */
#define GLOBALS_SIZE 16

/* Bytes of the functions that are looked at. */
#define CODE_SIZE 64

/* Code being compared. */
struct code {
	uint8_t bytes[CODE_SIZE];
	size_t at;
	uint64_t avma; /* of bytes */
};

/* Passes the @n bytes @pattern if they come next. */
static bool pass(struct code *c, const char *pattern, size_t n)
{
	if (CODE_SIZE - c->at < n || memcmp(c->bytes + c->at, pattern, n) != 0)
		return false;
	c->at += n;
	return true;
}

#define PASS(c, pattern) pass((c), (pattern), sizeof(pattern) - 1)

/* Takes a signed number of 4 bytes. */
static bool take_i32(struct code *c, int64_t *ret)
{
	if (CODE_SIZE - c->at < 4)
		return false;
	*ret = (int32_t)load_u32(c->bytes + c->at, false);
	c->at += 4;
	return true;
}

/* Takes a displacement of 4 bytes from the end of it; returns the address. */
static bool take_relative(struct code *c, uint64_t *ret)
{
	int64_t distance;

	if (!take_i32(c, &distance))
		return false;
	*ret = c->avma + c->at + (uint64_t)distance;
	return true;
}

/* Takes the number that is added to rax; none is 0. */
static bool take_added(struct code *c, int64_t *ret)
{
	*ret = 0;
	if (PASS(c, "\x48\x05") || PASS(c, "\x48\x8d\x80")) /* add; lea disp(%rax), %rax */
		return take_i32(c, ret);
	if (PASS(c, "\x48\x83\xc0") || PASS(c, "\x48\x8d\x40")) { /* the same with a byte */
		if (c->at == CODE_SIZE)
			return false;
		*ret = (int8_t)c->bytes[c->at++];
	}
	return true;
}

/* Reads the code of function @name of module @m; returns false if it is not there. */
static bool read_code(const struct fathom_runtime *r, const struct fathom_runtime_module *m,
		      const char *name, struct code *ret)
{
	uint64_t svma;

	*ret = (struct code){ .at = 0 };
	if (!fathom_symbols_find(&m->module->symbols, name, &svma))
		return false;
	ret->avma = svma + m->bias;
	return fathom_reader_read(r->reader, ret->avma, ret->bytes, sizeof ret->bytes);
}

/* Finds the TLS segment of @m and its size, rounded up to its alignment. */
static bool find_block(const struct fathom_runtime_module *m, uint64_t *ret_size,
		       uint64_t *ret_rounded)
{
	const struct fathom_image *image = &m->module->main->image;
	struct fathom_segment s;

	for (uint32_t i = 0; i < image->phnum; i++) {
		uint64_t align;

		if (!fathom_image_segment(image, i, &s) || s.type != PT_TLS ||
		    s.memsz > UINT32_MAX || s.align > UINT32_MAX)
			continue;
		align = s.align ? s.align : 1;
		*ret_size = s.memsz;
		*ret_rounded = (s.memsz + align - 1) / align * align;
		return true;
	}
	return false;
}

/* Returns the number of the TLS block of module @module; 0: unknown. */
static uint64_t read_modid(struct fathom_runtime *r, uint32_t module)
{
	const struct fathom_link *link = fathom_link_of(r, module);
	const struct fathom_glibc *glibc;
	uint64_t modid;

	if (!link || fathom_glibc_read(r, &glibc) || !glibc ||
	    !fathom_runtime_word(r, glibc->image, link->at + glibc->modid.off, &modid))
		return 0;
	return modid;
}

/* Takes the call of __tls_get_addr(), the GOT pair of which is at *@ret. */
static bool take_general(struct code *c, uint64_t *ret)
{
	uint64_t callee;

	(void)PASS(c, "\x66");
	if (!PASS(c, "\x48\x8d\x3d") || !take_relative(c, ret))
		return false;
	return (PASS(c, "\xe8") || PASS(c, "\x66\x66\x48\xe8") || PASS(c, "\xff\x15") ||
		PASS(c, "\x66\x48\xff\x15")) &&
	       take_relative(c, &callee);
}

/* Takes the start of the thread's control block. */
static bool take_fs(struct code *c)
{
	(void)(PASS(c, "\x66\x66\x66") || PASS(c, "\x66\x66"));
	return PASS(c, "\x64\x48\x8b\x04\x25\0\0\0\0");
}

/* Passes what a function begins with. */
static void pass_prologue(struct code *c)
{
	(void)PASS(c, "\xf3\x0f\x1e\xfa"); /* endbr64 */
	(void)(PASS(c, "\x48\x83\xec\x08") || PASS(c, "\x50") || PASS(c, "\x55\x48\x89\xe5"));
}

/* Passes what a function ends with, up to the return. */
static bool pass_epilogue(struct code *c)
{
	(void)(PASS(c, "\x48\x83\xc4\x08") || PASS(c, "\x59") || PASS(c, "\x5d"));
	return PASS(c, "\xc3");
}

/* Finds the variable by __cxa_get_globals(). */
static bool find_tls(struct fathom_runtime *r, uint32_t module, uint64_t *ret)
{
	const struct fathom_runtime_module *m = &r->modules[module];
	const struct fathom_image *image = &m->module->main->image;
	uint64_t pair = 0;
	uint64_t rounded;
	uint64_t modid;
	uint64_t size;
	uint64_t off;
	int64_t added;
	struct code c;
	size_t body;

	if (!read_code(r, m, "__cxa_get_globals", &c) || !find_block(m, &size, &rounded))
		return false;
	pass_prologue(&c);
	body = c.at;
	if (!take_general(&c, &pair)) {
		pair = 0;
		c.at = body;
		if (!take_fs(&c))
			return false;
	}
	/* Compilers may restore the stack pointer before or after the addition. */
	(void)PASS(&c, "\x48\x83\xc4\x08");
	if (!take_added(&c, &added) || !pass_epilogue(&c))
		return false;
	if (pair) {
		if (!fathom_runtime_word(r, image, pair, &modid) || !modid ||
		    modid != read_modid(r, module) ||
		    !fathom_runtime_word(r, image, pair + 8, &off))
			return false;
		off += (uint64_t)added;
	} else {
		off = rounded + (uint64_t)added;
	}
	*ret = off;
	return size >= GLOBALS_SIZE && off <= size - GLOBALS_SIZE;
}

/* Returns whether the stub at @avma of module @m jumps to the function @name of libc. */
static bool is_stub_of(const struct fathom_runtime *r, const struct fathom_runtime_module *m,
		       uint64_t avma, const char *name)
{
	const struct fathom_image *image = &m->module->main->image;
	const struct fathom_str wanted = { name, (uint32_t)strlen(name) };
	struct fathom_symbol symbol;
	struct code c = { .avma = avma };
	uint64_t slot;
	uint64_t to;

	if (!fathom_reader_read(r->reader, avma, c.bytes, 16))
		return false;
	(void)PASS(&c, "\xf3\x0f\x1e\xfa");
	(void)PASS(&c, "\xf2");
	if (!PASS(&c, "\xff\x25") || !take_relative(&c, &slot) ||
	    !fathom_runtime_word(r, image, slot, &to))
		return false;
	for (size_t i = 0; i < r->n_modules; i++) {
		const struct fathom_runtime_module *other = &r->modules[i];

		if (other->dynsym->number != FATHOM_NONE &&
		    fathom_dynsym_find(other->dynsym, wanted, &symbol) &&
		    symbol.value + other->bias == to)
			return true;
	}
	return false;
}

/* Finds the key by __cxa_get_globals_fast(). */
static bool find_key(const struct fathom_runtime *r, uint32_t module, uint64_t *ret)
{
	const struct fathom_runtime_module *m = &r->modules[module];
	uint64_t unused;
	uint64_t callee;
	struct code c;

	if (!read_code(r, m, "__cxa_get_globals_fast", &c))
		return false;
	(void)PASS(&c, "\xf3\x0f\x1e\xfa");
	/* push %rax; lea once, %rdi; lea function, %rsi; call pthread_once; test; jne; mov key */
	if (!PASS(&c, "\x50") || !PASS(&c, "\x48\x8d\x3d") || !take_relative(&c, &unused) ||
	    !PASS(&c, "\x48\x8d\x35") || !take_relative(&c, &unused) || !PASS(&c, "\xe8") ||
	    !take_relative(&c, &unused) || !PASS(&c, "\x85\xc0\x75"))
		return false;
	c.at++;
	return PASS(&c, "\x8b\x3d") && take_relative(&c, ret) && PASS(&c, "\x58\xe9") &&
	       take_relative(&c, &callee) && is_stub_of(r, m, callee, "pthread_getspecific");
}

bool fathom_eh_globals_find(struct fathom_runtime *r, uint32_t module,
			    struct fathom_eh_globals *ret)
{
	*ret = (struct fathom_eh_globals){ .module = module };
	if (r->modules[module].module->main->image.machine != EM_X86_64)
		return false;
	if (find_tls(r, module, &ret->off))
		return true;
	ret->way = FATHOM_EH_KEY;
	return find_key(r, module, &ret->key);
}

/* The threads of a program by libc's list. */
struct search {
	int32_t pid;
	int32_t tid;
	uint64_t found; /* 0: not found */
	bool has_main;
};

static bool note_main(const struct fathom_libc_thread *t, void *data)
{
	struct search *s = data;

	s->has_main |= t->tid == s->pid;
	return !s->has_main;
}

static bool take_copy(int32_t tid, uint64_t avma, void *data)
{
	struct search *s = data;

	if (tid == s->tid)
		s->found = avma;
	return !s->found;
}

fathom_err fathom_eh_globals_locate(struct fathom_runtime *r, const struct fathom_eh_globals *g,
				    int32_t pid, int32_t tid, uint64_t *ret)
{
	struct search s = { .pid = pid, .tid = tid };
	uint64_t key;

	/* In another PID namespace threads have other numbers. */
	FATHOM_TRY(fathom_threads_walk(r, g->module, note_main, &s));
	if (!s.has_main)
		return FATHOM_E_NOT_FOUND;
	if (g->way == FATHOM_EH_KEY) {
		if (!fathom_reader_uint(r->reader, g->key, 4, false, &key))
			return FATHOM_E_NOT_FOUND;
		return fathom_specific_read(r, (uint32_t)key, tid, ret);
	}
	FATHOM_TRY(fathom_tls_walk(r, g->module, g->off, take_copy, &s));
	*ret = s.found;
	return s.found ? FATHOM_OK : FATHOM_E_NOT_FOUND;
}
