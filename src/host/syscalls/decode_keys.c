/* SPDX-License-Identifier: MIT */
/* Keys and keyrings (linux/keyctl.h). */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

void fathom_decode_key(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t value = (uint64_t)(int64_t)(int32_t)o->value;

	if (fathom_constant_name(FATHOM_CONSTANTS_KEY_SPECS, d->arch, value))
		fathom_put_enum(d, FATHOM_CONSTANTS_KEY_SPECS, value);
	else
		fathom_put_signed(d, (int32_t)o->value);
}

/* Where the kernel is to put keys that it asks for. */
void fathom_decode_key_default(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t value = (uint64_t)(int64_t)(int32_t)o->value;
	const enum fathom_constant_table table = FATHOM_CONSTANTS_KEY_DEFAULTS;

	if (fathom_constant_name(table, d->arch, value)) {
		fathom_put_enum(d, table, value);
	} else {
		fathom_put_signed(d, (int32_t)value);
		fathom_put_comment(d, fathom_constant_unknown(table));
	}
}

void fathom_decode_key_error(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_errno(d, (uint32_t)o->value);
}

/* The result is the length of all that there is, of which there may be room for less. */
static uint64_t stored_length(const struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t all = fathom_decode_count(d, FATHOM_COUNT_RESULT);
	const uint64_t room = fathom_decode_count(d, o->n);

	return all < room ? all : room;
}

void fathom_decode_key_data(struct fathom_decoder *d, const struct fathom_operand *o)
{
	if (fathom_decode_has_failed(d))
		fathom_put_address(d, o->value);
	else
		fathom_put_data(d, o->value, stored_length(d, o));
}

/*
 * A text, whose end is stored, too, if there is room; among all bytes in hexadecimal it is shown.
 */
void fathom_decode_key_text(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t n = stored_length(d, o);
	uint64_t last;

	if (fathom_decode_has_failed(d)) {
		fathom_put_address(d, o->value);
		return;
	}
	if (n && d->options->hex < 2 && fathom_decode_get_uint(d, o->value + n - 1, 1, &last) &&
	    !last)
		n--;
	fathom_put_data(d, o->value, n);
}
