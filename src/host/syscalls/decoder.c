/* SPDX-License-Identifier: MIT */
#include "host/syscalls/decoder.h"

#include <elf.h>

#include "host/syscalls/syscall_functions.h"

size_t fathom_decode_take(struct fathom_decoder *d, uint64_t avma, void *to, size_t size)
{
	size_t n;

	if (!d->memory)
		return fathom_syscall_record_read(d->record, avma, d->at_exit, to, size);
	n = d->memory->read(d->memory->data, avma, to, size);
	if (n)
		fathom_syscall_record_add(d->record, avma, d->at_exit, to, n);
	return n;
}

size_t fathom_decode_read(struct fathom_decoder *d, uint64_t avma, void *to, size_t size)
{
	return d->call.format & FATHOM_SYSCALL_BY_ADDRESS ? 0
							  : fathom_decode_take(d, avma, to, size);
}

bool fathom_decode_get(struct fathom_decoder *d, uint64_t avma, void *to, size_t size)
{
	return fathom_decode_read(d, avma, to, size) == size;
}

bool fathom_decode_get_before(struct fathom_decoder *d, uint64_t avma, void *to, size_t size)
{
	return fathom_syscall_record_read(d->record, avma, false, to, size) == size;
}

uint64_t fathom_decode_load(const struct fathom_decoder *d, const uint8_t *bytes, uint8_t width)
{
	switch (width == FATHOM_WIDTH_WORD ? d->word : width) {
	case 1:
		return *bytes;
	case 2:
		return load_u16(bytes, false);
	case 4:
		return load_u32(bytes, false);
	default:
		return load_u64(bytes, false);
	}
}

bool fathom_decode_get_uint(struct fathom_decoder *d, uint64_t avma, uint8_t width, uint64_t *ret)
{
	uint8_t bytes[8];

	if (!fathom_decode_get(d, avma, bytes, width == FATHOM_WIDTH_WORD ? d->word : width))
		return false;
	*ret = fathom_decode_load(d, bytes, width);
	return true;
}

bool fathom_decode_has_failed(const struct fathom_decoder *d)
{
	return d->at_exit && d->call.result < 0 && d->call.result >= -4095;
}

int32_t fathom_decode_int(const struct fathom_decoder *d, unsigned argument)
{
	return (int32_t)(uint32_t)d->call.args[argument];
}

uint64_t fathom_decode_count(const struct fathom_decoder *d, uint32_t source)
{
	if (source == FATHOM_COUNT_RESULT)
		return d->call.result > 0 ? (uint64_t)d->call.result : 0;
	if (source >= FATHOM_DECODE_ARGUMENTS)
		return 0;
	return fathom_types[d->types[source]].width == 4 ? (uint32_t)d->call.args[source]
							 : d->call.args[source];
}

bool fathom_decode_step(struct fathom_decoder *d)
{
	if (!d->steps || (d->memory && d->record->is_cut) ||
	    (d->out && d->out->len - d->begin > FATHOM_DECODE_TEXT))
		return false;
	d->steps--;
	return true;
}

/* Replaces the arguments from @i on by those that the argument before them selects. */
static void select_case(struct fathom_decoder *d, unsigned i, const struct fathom_case_group *g)
{
	const uint32_t value = (uint32_t)d->call.args[i - 1] & g->mask;
	uint16_t types = g->types;
	uint8_t n = g->n_types;

	if (g->result)
		d->result_type = g->result;
	for (const struct fathom_case *c = &fathom_cases[g->first];
	     c < &fathom_cases[g->first] + g->n; c++)
		if (c->value == value && c->arches & d->arch) {
			types = c->types;
			n = c->n;
			d->result_type = c->result ? c->result : d->result_type;
			break;
		}
	d->n = (uint8_t)(i + n);
	memcpy(&d->types[i], &fathom_type_lists[types], n * sizeof *d->types);
}

#define TYPE_OF_FILE 0170000 /* S_IFMT */
#define CHARACTER    0020000 /* S_IFCHR */
#define BLOCK        0060000 /* S_IFBLK */

#define MOVED 3 /* MREMAP_MAYMOVE and MREMAP_FIXED: both */

/* Types of files are no single bits: of these, devices are meant. */
static bool has_bits(uint64_t value, uint32_t mask)
{
	if (mask == MOVED)
		return (value & mask) == mask;
	if (mask != CHARACTER)
		return value & mask;
	return (value & TYPE_OF_FILE) == CHARACTER || (value & TYPE_OF_FILE) == BLOCK;
}

/* Decides about arguments that others select. */
static void settle_types(struct fathom_decoder *d)
{
	for (unsigned i = 0; i < d->n; i++) {
		const struct fathom_type *type = &fathom_types[d->types[i]];

		if (type->kind == FATHOM_KIND_IF && !has_bits(d->call.args[type->width], type->n))
			d->n = (uint8_t)i;
		else if (type->kind == FATHOM_KIND_IF)
			d->types[i] = type->a;
		else if (type->kind == FATHOM_KIND_CASES)
			select_case(d, i, &fathom_case_groups[type->a]);
	}
}

/* Returns whether arguments are shown by their types. */
static bool is_decoded(const struct fathom_decoder *d)
{
	return d->syscall && !(d->call.format & FATHOM_SYSCALL_IN_NUMBERS);
}

/*
 * Returns whether the call is rt_sigreturn(), which has no arguments: it restores from the stack.
 */
static bool is_sigreturn(const struct fathom_decoder *d)
{
	const struct fathom_type *type = &fathom_types[d->types[0]];

	return d->n == 1 && type->kind == FATHOM_KIND_FUNCTION &&
	       fathom_decode_functions[type->a] == fathom_decode_sigreturn;
}

/* Returns how many arguments are shown as numbers: halves of others are not. */
static uint8_t count_numbers(const struct fathom_decoder *d)
{
	uint8_t n = d->syscall->n_arguments;

	if (is_sigreturn(d))
		return 0;
	while (n && n <= d->n && !d->types[n - 1])
		n--;
	return n;
}

void fathom_decode_begin(struct fathom_decoder *d)
{
	fathom_syscall_record_call(d->record, &d->call);
	d->arch = fathom_syscall_arch_bit(d->call.machine);
	d->layout = d->call.machine == EM_386;
	d->word = d->layout ? 4 : 8;
	d->steps = FATHOM_DECODE_STEPS;
	d->is_verbose = d->call.format & FATHOM_SYSCALL_WHOLE ||
			(d->options->is_verbose && !(d->call.format & FATHOM_SYSCALL_ABBREVIATED));
	d->syscall = fathom_syscall_find(d->call.machine, d->call.number);
	if (!d->syscall) {
		d->n = FATHOM_DECODE_ARGUMENTS;
		return;
	}
	fathom_decode_enter_subcall(d);
	d->n = d->syscall->n_types;
	d->result_type = d->syscall->result;
	memcpy(d->types, &fathom_type_lists[d->syscall->types], d->n * sizeof *d->types);
	if (is_decoded(d))
		settle_types(d);
	else
		d->n = count_numbers(d);
}

/* Returns the number of the first argument that is known only after the call. */
static unsigned first_out(const struct fathom_decoder *d)
{
	for (unsigned i = 0; i < d->n; i++)
		switch (fathom_types[d->types[i]].kind) {
		case FATHOM_KIND_POINTER_OUT:
		case FATHOM_KIND_POINTER_OUT_ALWAYS:
		case FATHOM_KIND_POINTER_BOTH:
		case FATHOM_KIND_FUNCTION_OUT:
		case FATHOM_KIND_FUNCTION_BOTH:
			return i;
		default:
			break;
		}
	return d->n;
}

/* Arguments of type 0 are not shown: halves of others, and what does not count. */
static bool is_shown(const struct fathom_decoder *d, unsigned i)
{
	return !is_decoded(d) || d->types[i];
}

static void put_argument(struct fathom_decoder *d, unsigned i, struct fathom_syscall_line *marks)
{
	const struct fathom_operand o = { .value = d->call.args[i], .type = d->types[i] };

	d->argument = (uint8_t)i;
	if (marks)
		marks->args[i].begin = (uint32_t)d->out->len;
	if (is_decoded(d))
		fathom_put_value(d, d->types[i], &o);
	else
		fathom_put_hex(d, o.value);
	if (marks) {
		marks->args[i].end = (uint32_t)d->out->len;
		marks->args[i].name =
			d->syscall ? fathom_syscall_argument_name(d->syscall, i) : NULL;
	}
}

/* Before the call, reads what the second half will need to know from then. */
static void note_before(struct fathom_decoder *d, unsigned first)
{
	struct fathom_text *out = d->out;

	d->out = NULL;
	for (unsigned i = first; i < d->n; i++) {
		const struct fathom_operand o = { .value = d->call.args[i], .type = d->types[i] };

		const uint8_t kind = fathom_types[d->types[i]].kind;

		if (kind == FATHOM_KIND_FUNCTION_BOTH || kind == FATHOM_KIND_POINTER_BOTH)
			fathom_put_value(d, d->types[i], &o);
	}
	d->out = out;
}

static void put_name(struct fathom_decoder *d)
{
	if (d->syscall) {
		fathom_put(d, fathom_syscall_names + d->syscall->name);
	} else if (d->options->dialect == FATHOM_SYSCALL_STRACE) {
		fathom_put(d, "syscall_");
		fathom_put_hex(d, d->call.number);
	} else {
		fathom_put(d, "syscall_");
		fathom_put_unsigned(d, d->call.number);
	}
	fathom_put_char(d, '(');
}

/* Returns whether argument @i prints its comma itself, after what the call has stored. */
static bool has_own_comma(const struct fathom_decoder *d, unsigned i)
{
	const struct fathom_type *type = &fathom_types[d->types[i]];

	return type->kind == FATHOM_KIND_FUNCTION_OUT &&
	       fathom_decode_functions[type->a] == fathom_decode_clone_size;
}

void fathom_decode_half(struct fathom_decoder *d, bool at_exit, struct fathom_syscall_line *marks)
{
	const unsigned split = is_decoded(d) ? first_out(d) : d->n;

	bool has_one = false;

	d->at_exit = at_exit;
	if (!at_exit)
		put_name(d);
	for (unsigned i = at_exit ? split : 0; i < (at_exit ? d->n : split); i++) {
		if (!is_shown(d, i))
			continue;
		/* The comma after the last argument of the first half is printed with that. */
		if (has_one)
			fathom_put(d, ", ");
		put_argument(d, i, marks);
		has_one = true;
	}
	if (!at_exit && split && split < d->n && !has_own_comma(d, split))
		fathom_put(d, ", ");
	if (!at_exit && is_decoded(d) && d->memory)
		note_before(d, split);
	if (at_exit)
		fathom_put_char(d, ')');
}

/* The text that a symbolic link is to have refers to no file. */
static bool begins_with_link_text(const struct fathom_decoder *d)
{
	const char *name = fathom_syscall_names + d->syscall->name;

	return !strcmp(name, "symlink") || !strcmp(name, "symlinkat");
}

void fathom_decode_mentions(struct fathom_decoder *d)
{
	d->at_exit = false;
	if (!d->syscall)
		return;
	for (unsigned i = begins_with_link_text(d); i < d->n; i++)
		switch (fathom_types[d->types[i]].kind) {
		case FATHOM_KIND_POINTER_OUT:
		case FATHOM_KIND_POINTER_OUT_ALWAYS:
		case FATHOM_KIND_FUNCTION_OUT:
			break;
		case FATHOM_KIND_FUNCTION:
		case FATHOM_KIND_POINTER:
			/* Descriptors that messages carry do not count, as in strace. */
			if (d->syscall->classes & FATHOM_SYSCALL_NETWORK)
				break;
			put_argument(d, i, NULL);
			break;
		default:
			put_argument(d, i, NULL);
		}
}

/* Calls that take a size return one, if anything: write(), recv(), readlink(). */
static bool is_size(const struct fathom_decoder *d)
{
	for (unsigned i = 0; i < d->n && d->call.result >= 0; i++)
		if (fathom_types[d->types[i]].kind == FATHOM_KIND_SIZE)
			return true;
	return false;
}

void fathom_decode_result(struct fathom_decoder *d)
{
	const struct fathom_operand o = { .value = (uint64_t)d->call.result,
					  .type = d->result_type };

	if (fathom_decode_has_failed(d))
		return;
	d->is_result = true;
	if (d->call.format & FATHOM_SYSCALL_IN_NUMBERS)
		fathom_put_hex(d, (uint64_t)d->call.result);
	else if (d->result_type)
		fathom_put_value(d, d->result_type, &o);
	else if (is_size(d))
		fathom_put_size(d, (uint64_t)d->call.result);
	else
		fathom_put_signed(d, d->call.result);
}
