/* SPDX-License-Identifier: MIT */
/*
 * rules [--spoil] FILE...: compares the table of unwind rules of each file with its call frame
 * information. At the first and the last byte of each row both are applied to the same registers,
 * in a memory whose words are a hash of their address: the caller's pc, sp and frame pointer must
 * be equal. Between FDEs there must be no rule. For each file prints, behind "file PATH ERROR":
 *
 *   rows N wrong N gaps N hidden N kinds N N N N N N N N N kept N rules N bytes N made N
 *
 * hidden are rows where another FDE of the same address holds; kinds counts the rows of each
 * enum fathom_unwind_kind; kept are the rows of the table, bytes its size, made the nanoseconds of
 * processor time that making it took.
 * --spoil changes one rule before: then rows must be wrong.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "each_module.h"
#include "host/module/rule_table.h"
#include "safe/unwind/step.h"

static bool is_spoiled;

/* What one file's comparison has found. */
struct found {
	struct fathom_module *module;
	struct fathom_unwind_table *table;
	const struct fathom_unwind_arch *arch;
	struct fathom_row_reader reader;
	uint64_t end; /* of the FDEs so far */
	uint64_t n_rows;
	uint64_t n_wrong;
	uint64_t n_gaps;
	uint64_t n_hidden;
	uint64_t n_kind[9];
};

/* A word of memory: never 0, and another at each address. */
static uint64_t word_at(uint64_t avma)
{
	uint64_t x = avma + UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) | 1;
}

static size_t read_hash(void *data, uint64_t avma, void *to, size_t size)
{
	const uint64_t word = word_at(avma);

	(void)data;
	memcpy(to, &word, size);
	return size;
}

static const struct fathom_reader hash = { .read = read_hash };
static const struct fathom_step_memory memory = { .stack = &hash, .code = &hash };

/* The registers before the step. */
static struct fathom_registers registers_at(const struct fathom_unwind_arch *arch, uint64_t pc)
{
	struct fathom_registers r = { .machine = arch->machine, .pc = pc };

	for (uint8_t i = 0; i < arch->n; i++)
		fathom_register_set(&r, i, UINT64_C(0x10000000) * (i + 1u));
	fathom_register_set(&r, arch->pc, pc);
	r.sp = r.value[arch->sp];
	return r;
}

/* What a step leads to. */
struct caller {
	enum fathom_stop stop;
	uint64_t pc;
	uint64_t sp;
	uint64_t fp; /* 0: unknown */
};

static struct caller step_by_row(const struct fathom_unwind_arch *arch,
				 const struct fathom_row *row, uint64_t pc)
{
	struct fathom_registers r = registers_at(arch, pc);
	const enum fathom_stop stop = fathom_step_row(row, 0, arch, &memory, &r);

	if (stop)
		return (struct caller){ .stop = stop };
	return (struct caller){ .pc = r.pc,
				.sp = r.sp,
				.fp = fathom_register_known(&r, arch->fp) ? r.value[arch->fp] : 0 };
}

/* Does what include/fathom/unwind.h says of a rule. */
static struct caller step_by_rule(const struct fathom_unwind_arch *arch,
				  const struct fathom_unwind_rule *rule, uint64_t pc)
{
	const uint64_t mask = arch->word == 8 ? UINT64_MAX : UINT32_MAX;
	const struct fathom_registers r = registers_at(arch, pc);
	const uint64_t fp = r.value[arch->fp];
	struct caller c = { .fp = fp };

	switch (rule->kind) {
	case FATHOM_UNWIND_SP:
		c.sp = r.sp;
		break;
	case FATHOM_UNWIND_FP:
		c.sp = fp;
		break;
	case FATHOM_UNWIND_REGISTER:
		c.sp = r.value[rule->number];
		break;
	case FATHOM_UNWIND_PLT:
		c.sp = r.sp + ((pc & 15) >= rule->number ? 8 : 0);
		break;
	case FATHOM_UNWIND_AT_FP:
		c.sp = word_at((fp + (uint64_t)rule->cfa_offset) & mask) -
		       (uint64_t)rule->cfa_offset;
		break;
	case FATHOM_UNWIND_END:
		return (struct caller){ .stop = FATHOM_STOP_ENTRY };
	default:
		return (struct caller){ .stop = FATHOM_STOP_NO_RULE };
	}
	c.sp = (c.sp + (uint64_t)rule->cfa_offset) & mask;
	c.pc = rule->ra_offset
		       ? word_at((c.sp + (uint64_t)(rule->ra_offset * (int64_t)arch->word)) &
				 mask) &
				 mask
		       : r.value[arch->link];
	if (rule->flags & FATHOM_UNWIND_RA_SIGNED)
		c.pc = c.pc >> 55 & 1 ? c.pc | arch->pac_mask : c.pc & ~arch->pac_mask;
	if (rule->flags & FATHOM_UNWIND_FP_LOST)
		c.fp = 0;
	if (rule->flags & FATHOM_UNWIND_FP_SAVED)
		c.fp = word_at(((rule->flags & FATHOM_UNWIND_FP_BY_FP ? fp : c.sp) +
				(uint64_t)(rule->fp_offset * (int64_t)arch->word)) &
			       mask) &
		       mask;
	return c;
}

static bool is_equal(const struct caller *a, const struct caller *b)
{
	return a->stop == b->stop && a->pc == b->pc && a->sp == b->sp && a->fp == b->fp;
}

static void note_wrong(struct found *f, uint64_t svma, const struct fathom_unwind_rule *rule)
{
	if (f->n_wrong++ < 10)
		printf("wrong %" PRIx64 " kind %d offset %d fp %d ra %d flags %d\n", svma,
		       rule->kind, rule->cfa_offset, rule->fp_offset, rule->ra_offset, rule->flags);
}

/* Compares the rule of the code at @svma with @row, which says of it what holds. */
static void compare_at(struct found *f, const struct fathom_row *row, bool is_signal, uint64_t svma)
{
	const struct fathom_unwind_rule *rule = fathom_unwind_table_find(f->table, svma);
	const struct caller by_row = step_by_row(f->arch, row, svma);
	const struct caller by_rule = step_by_rule(f->arch, rule, svma);

	if (is_signal || row->cfa.kind == FATHOM_RULE_UNSPECIFIED) {
		if (rule->kind != (is_signal ? FATHOM_UNWIND_SIGNAL : FATHOM_UNWIND_NONE))
			note_wrong(f, svma, rule);
	} else if (rule->kind == FATHOM_UNWIND_NONE || rule->kind == FATHOM_UNWIND_SIGNAL ||
		   (rule->kind != FATHOM_UNWIND_OTHER && !is_equal(&by_row, &by_rule))) {
		note_wrong(f, svma, rule);
	}
}

/* Returns whether @fde is the one that holds at @svma. */
static bool holds(struct found *f, const struct fathom_fde *fde, uint64_t svma)
{
	struct fathom_fde best;

	return !fathom_unwind_tables_find(&f->module->unwind, svma, &best) &&
	       best.off == fde->off && best.cie->cfi.is_eh == fde->cie->cfi.is_eh;
}

static void compare_row(struct found *f, const struct fathom_fde *fde, const struct fathom_row *row)
{
	const bool is_signal = fde->cie->is_signal_frame;

	if (!holds(f, fde, row->low)) {
		f->n_hidden++;
		return;
	}
	f->n_rows++;
	f->n_kind[fathom_unwind_table_find(f->table, row->low)->kind]++;
	compare_at(f, row, is_signal, row->low);
	if (holds(f, fde, row->high - 1))
		compare_at(f, row, is_signal, row->high - 1);
}

static bool compare_fde(const struct fathom_fde *fde, void *data)
{
	struct found *f = data;

	if (fde->low >= fde->high)
		return true;
	if (f->end && f->end < fde->low) {
		f->n_gaps++;
		if (fathom_unwind_table_find(f->table, f->end)->kind ||
		    fathom_unwind_table_find(f->table, fde->low - 1)->kind)
			note_wrong(f, f->end, fathom_unwind_table_find(f->table, f->end));
	}
	f->end = f->end > fde->high ? f->end : fde->high;
	if (!fathom_row_reader_init(&f->reader, fde, f->arch))
		while (!fathom_row_next(&f->reader))
			compare_row(f, fde, &f->reader.now);
	return true;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Moves the CFA of the rule that most rows have. */
static void spoil(const struct fathom_unwind_table *t)
{
	uint32_t *n = calloc(t->n_rules, sizeof *n);
	uint32_t most = 0;

	for (uint32_t i = 0; n && i < t->n_rows; i++)
		most = ++n[t->rule[i]] > n[most] ? t->rule[i] : most;
	free(n);
	((struct fathom_unwind_rule *)(uintptr_t)t->rules)[most].cfa_offset += 8;
}

static void compare_module(struct fathom_module *m)
{
	struct found f = { .module = m, .arch = fathom_unwind_arch(m->main->image.machine) };
	uint64_t made = 0;

	/* The first round brings the pages in. */
	for (int round = 0; round < 2; round++) {
		const uint64_t start = now_ns();

		free(f.table);
		if (fathom_rule_table_make(m, &f.table)) {
			printf("no table\n");
			return;
		}
		made = now_ns() - start;
	}
	if (is_spoiled)
		spoil(f.table);
	if (fathom_unwind_tables_walk(&m->unwind, false, compare_fde, &f))
		printf("no walk\n");
	printf("rows %" PRIu64 " wrong %" PRIu64 " gaps %" PRIu64 " hidden %" PRIu64 " kinds",
	       f.n_rows, f.n_wrong, f.n_gaps, f.n_hidden);
	for (size_t i = 0; i < sizeof f.n_kind / sizeof *f.n_kind; i++)
		printf(" %" PRIu64, f.n_kind[i]);
	printf(" kept %u rules %u bytes %" PRIu64 " made %" PRIu64 "\n", f.table->n_rows,
	       f.table->n_rules,
	       f.table->n_rows * UINT64_C(4) + (f.table->n_pages + UINT64_C(1)) * 4 +
		       f.table->n_rules * sizeof(struct fathom_unwind_rule),
	       made);
	free(f.table);
}

int main(int argc, char **argv)
{
	is_spoiled = argc > 1 && strcmp(argv[1], "--spoil") == 0;
	return is_spoiled ? each_module(argc - 2, argv + 2, compare_module)
			  : each_module(argc - 1, argv + 1, compare_module);
}
