/* SPDX-License-Identifier: MIT */
#include "host/space/user/snapshot_format.h"

#include <elf.h>

#include "fathom/answer.h"
#include "safe/unwind/registers.h"

#define SWAP FATHOM_SNAPSHOT_SWAP

uint8_t *fathom_snapshot_reserve(struct fathom_snapshot *s, size_t size)
{
	uint8_t *to;

	if (s->failed || !fathom_array_room(s->to, size)) {
		s->failed = true;
		return NULL;
	}
	to = (uint8_t *)s->to->items + s->to->n;
	memset(to, 0, size);
	s->to->n += size;
	return to;
}

/* Writes or reads @size raw bytes. */
static void bytes(struct fathom_snapshot *s, void *p, size_t size)
{
	const uint8_t *from = s->to ? p : cur_take(&s->from, size);
	uint8_t *to = s->to ? fathom_snapshot_reserve(s, size) : p;

	if (to && from)
		memcpy(to, from, size);
	else if (to)
		memset(to, 0, size);
}

static void u32(struct fathom_snapshot *s, uint32_t *value)
{
	uint32_t v = load_u32((const uint8_t *)value, SWAP);

	bytes(s, s->to ? &v : value, sizeof v);
	if (!s->to)
		*value = load_u32((const uint8_t *)value, SWAP);
}

void fathom_snapshot_u64(struct fathom_snapshot *s, uint64_t *value)
{
	uint64_t v = load_u64((const uint8_t *)value, SWAP);

	bytes(s, s->to ? &v : value, sizeof v);
	if (!s->to)
		*value = load_u64((const uint8_t *)value, SWAP);
}

/* Writes or reads the size of a text, and the text. */
static void text(struct fathom_snapshot *s, struct fathom_str *t)
{
	u32(s, &t->size);
	if (s->to)
		bytes(s, (void *)(uintptr_t)t->data, t->size);
	else
		t->data = (const char *)cur_take(&s->from, t->size);
}

void fathom_snapshot_header(struct fathom_snapshot *s, struct fathom_snapshot_header *h)
{
	bytes(s, h->magic, sizeof h->magic);
	u32(s, &h->version);
	u32(s, &h->crc);
	fathom_snapshot_u64(s, &h->size);
}

void fathom_snapshot_process(struct fathom_snapshot *s, struct fathom_snapshot_process *p)
{
	fathom_snapshot_u64(s, &p->pid);
	fathom_snapshot_u64(s, &p->page);
	fathom_snapshot_u64(s, &p->entry);
	bytes(s, p->command, sizeof p->command);
}

void fathom_snapshot_file(struct fathom_snapshot *s, struct fathom_dump_file *f)
{
	uint64_t ctime_ns = (uint64_t)f->id.ctime_ns;
	uint32_t flags = f->deleted;

	fathom_snapshot_u64(s, &f->id.device);
	fathom_snapshot_u64(s, &f->id.inode);
	fathom_snapshot_u64(s, &f->id.size);
	fathom_snapshot_u64(s, &ctime_ns);
	u32(s, &flags);
	text(s, &f->name);
	f->id.ctime_ns = (int64_t)ctime_ns;
	f->deleted = flags & 1;
}

void fathom_snapshot_mapping(struct fathom_snapshot *s, struct fathom_mapping *m, uint32_t *file)
{
	uint32_t rights =
		(m->readable ? 1u : 0) | (m->writable ? 2u : 0) | (m->executable ? 4u : 0);

	fathom_snapshot_u64(s, &m->start);
	fathom_snapshot_u64(s, &m->end);
	fathom_snapshot_u64(s, &m->off);
	u32(s, file);
	u32(s, &rights);
	m->readable = rights & 1;
	m->writable = rights & 2;
	m->executable = rights & 4;
}

void fathom_snapshot_code(struct fathom_snapshot *s, struct fathom_dump_code *c)
{
	static const uint8_t sources[] = { 0, FATHOM_SOURCE_JITDUMP, FATHOM_SOURCE_PERF_MAP };
	uint32_t source = c->source == FATHOM_SOURCE_JITDUMP ? 1 : 2;

	fathom_snapshot_u64(s, &c->start);
	fathom_snapshot_u64(s, &c->end);
	fathom_snapshot_u64(s, &c->symbol);
	fathom_snapshot_u64(s, &c->size);
	u32(s, &source);
	text(s, &c->name);
	c->source = source < sizeof sources ? sources[source] : 0;
}

static void i32(struct fathom_snapshot *s, int32_t *value)
{
	uint32_t v = (uint32_t)*value;

	u32(s, &v);
	*value = (int32_t)v;
}

/* Writes or reads the registers. */
static void registers(struct fathom_snapshot *s, struct fathom_registers *r)
{
	const struct fathom_unwind_arch *arch = fathom_unwind_arch(r->machine);
	uint32_t n = arch ? arch->n : 0;

	u32(s, &r->machine);
	u32(s, &n);
	fathom_snapshot_u64(s, &r->known);
	arch = fathom_unwind_arch(r->machine);
	if (!arch || n != arch->n) {
		r->machine = EM_NONE;
		if (!s->to)
			cur_skip(&s->from, (uint64_t)n * sizeof(uint64_t));
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		fathom_snapshot_u64(s, &r->value[i]);
	r->known &= (UINT64_C(1) << n) - 1;
	r->pc = r->value[arch->pc];
	r->sp = r->value[arch->sp];
}

/* Writes or reads where the pieces of a stack are; false: there are more than one can have. */
static bool pieces(struct fathom_snapshot *s, struct fathom_stack_pieces *p)
{
	uint32_t n = p->n;
	uint32_t zero = 0;

	u32(s, &n);
	u32(s, &zero);
	if (n > FATHOM_STACK_PIECES)
		return false;
	p->n = (uint8_t)n;
	for (uint32_t i = 0; i < n; i++) {
		fathom_snapshot_u64(s, &p->items[i].avma);
		fathom_snapshot_u64(s, &p->items[i].bytes.size);
	}
	return true;
}

bool fathom_snapshot_thread(struct fathom_snapshot *s, struct fathom_stored_thread *t)
{
	uint32_t state = (uint8_t)t->state;
	uint32_t reason = t->reason;
	uint32_t flags = t->was_restarted;
	uint64_t number = (uint64_t)t->syscall_number;

	i32(s, &t->pid);
	i32(s, &t->tid);
	u32(s, &state);
	i32(s, &t->signal);
	i32(s, &t->signal_code);
	i32(s, &t->owner);
	u32(s, &reason);
	u32(s, &flags);
	fathom_snapshot_u64(s, &number);
	fathom_snapshot_u64(s, &t->fault_address);
	fathom_snapshot_u64(s, &t->pac_mask);
	fathom_snapshot_u64(s, &t->pause_ns);
	registers(s, &t->registers);
	text(s, &t->name);
	text(s, &t->syscall);
	text(s, &t->waits_for);
	text(s, &t->failed);
	t->state = state < 0x80 ? (char)state : 0;
	t->reason = (uint8_t)reason;
	t->was_restarted = flags & 1;
	t->syscall_number = (int64_t)number;
	return pieces(s, &t->stack);
}

/* Writes or reads the header of a record. */
static void record(struct fathom_snapshot *s, uint32_t *type, uint64_t *size)
{
	uint32_t zero = 0;

	u32(s, type);
	u32(s, &zero);
	fathom_snapshot_u64(s, size);
}

size_t fathom_snapshot_begin(struct fathom_snapshot *s, enum fathom_snapshot_record type)
{
	uint32_t number = type;
	uint64_t size = 0;

	record(s, &number, &size);
	return s->to->n;
}

void fathom_snapshot_end(struct fathom_snapshot *s, size_t record)
{
	uint64_t size = s->to->n - record;

	(void)fathom_snapshot_reserve(s, (size_t)((0 - size) & 7));
	if (s->failed)
		return;
	size = load_u64((const uint8_t *)&size, SWAP);
	memcpy(s->to->items + record - sizeof size, &size, sizeof size);
}

bool fathom_snapshot_next(struct fathom_snapshot *s, uint32_t *ret_type,
			  struct fathom_snapshot *ret)
{
	uint64_t size = 0;

	*ret_type = 0;
	record(s, ret_type, &size);
	*ret = (struct fathom_snapshot){ .from = cur_sub(&s->from, size) };
	cur_skip(&s->from, (0 - size) & 7);
	return cur_ok(&s->from);
}
