/* SPDX-License-Identifier: MIT */
/* Prints values by their types (syscall_types.h). */
#include "host/syscalls/decoder.h"

static uint64_t cut(const struct fathom_decoder *d, uint64_t value, uint8_t width)
{
	const unsigned bytes = width == FATHOM_WIDTH_WORD ? d->word : width;

	return bytes >= 8 || !bytes ? value : value & ((UINT64_C(1) << 8 * bytes) - 1);
}

static int64_t signed_value(const struct fathom_decoder *d, uint64_t value, uint8_t width)
{
	switch (width == FATHOM_WIDTH_WORD ? d->word : width) {
	case 1:
		return (int8_t)value;
	case 2:
		return (int16_t)value;
	case 4:
		return (int32_t)value;
	default:
		return (int64_t)value;
	}
}

#define STATX_BIRTH 0x800 /* STATX_BTIME */

static void put_struct(struct fathom_decoder *d, const struct fathom_type_struct *s,
		       const uint8_t *bytes, uint64_t avma)
{
	bool is_first = true;
	bool is_short = false;

	fathom_put_char(d, '{');
	for (const struct fathom_type_field *f = &fathom_type_fields[s->first];
	     f < &fathom_type_fields[s->first] + s->n; f++) {
		const struct fathom_operand o = { .bytes = bytes + f->off[d->layout],
						  .avma = avma + f->off[d->layout],
						  .type = f->type };

		if (s->is_abbreviated && f->shown != 1 && !d->is_verbose) {
			is_short = true;
			continue;
		}
		if (f->shown == 2 && !(load_u32(bytes, false) & STATX_BIRTH))
			continue;
		if (!is_first)
			fathom_put(d, ", ");
		is_first = false;
		/* Without a name its function prints members of its own. */
		if (strcmp(fathom_syscall_names + f->name, "_") != 0) {
			fathom_put(d, fathom_syscall_names + f->name);
			fathom_put_char(d, '=');
		}
		fathom_put_value(d, f->type, &o);
	}
	fathom_put(d, is_short ? ", ...}" : "}");
}

/* Prints the elements of an array that lies in bytes that were read. */
static void put_inner_array(struct fathom_decoder *d, const struct fathom_type *type,
			    const struct fathom_operand *o)
{
	const uint16_t size = fathom_type_sizes[type->a][d->layout];

	fathom_put_char(d, '[');
	for (uint32_t i = 0; i < type->n; i++) {
		const struct fathom_operand element = { .bytes = o->bytes + i * size,
							.avma = o->avma + i * size,
							.type = type->a };

		if (i)
			fathom_put(d, ", ");
		fathom_put_value(d, type->a, &element);
	}
	fathom_put_char(d, ']');
}

static void put_function(struct fathom_decoder *d, const struct fathom_type *type,
			 const struct fathom_operand *o, uint64_t value)
{
	const struct fathom_operand with = {
		.value = value, .bytes = o->bytes, .avma = o->avma, .n = type->n, .type = o->type
	};

	fathom_decode_functions[type->a](d, &with);
}

/* Returns whether all of a value of type @number, or its first byte, can be read. */
static bool can_read(struct fathom_decoder *d, uint16_t number, uint64_t avma)
{
	const uint16_t size = fathom_type_sizes[number][d->layout];
	uint8_t bytes[FATHOM_DECODE_STRUCT];
	const bool is_struct = fathom_types[number].kind == FATHOM_KIND_STRUCT;

	return fathom_decode_get(d, avma, bytes, is_struct && size < sizeof bytes ? size : 1);
}

/* Prints what was at @avma before the call; returns false if that is its address. */
static bool put_before(struct fathom_decoder *d, uint16_t number, uint64_t avma)
{
	const bool at_exit = d->at_exit;
	bool is_read;

	d->at_exit = false;
	is_read = avma && can_read(d, number, avma);
	if (is_read)
		fathom_put_pointer(d, number, avma);
	else
		fathom_put_address(d, avma);
	d->at_exit = at_exit;
	return is_read;
}

/* While the second half is captured, what was there before the call has been read. */
static void put_both_halves(struct fathom_decoder *d, const struct fathom_type *type, uint64_t avma)
{
	const bool has_arrow = type->n & FATHOM_TYPE_ARROW;
	const bool has_failed = fathom_decode_has_failed(d);
	const bool has_first = !d->at_exit || has_arrow || has_failed;

	if (has_first && !(d->at_exit && d->memory) && !put_before(d, (uint16_t)type->n, avma))
		return;
	if (!d->at_exit || has_failed)
		return;
	if (has_arrow)
		fathom_put(d, " => ");
	fathom_put_pointer(d, type->a, avma);
}

/* Prints what is not a plain number. */
static void put_compound(struct fathom_decoder *d, const struct fathom_type *type,
			 const struct fathom_operand *o, uint64_t value)
{
	switch (type->kind) {
	case FATHOM_KIND_PATH:
		fathom_put_path(d, value);
		break;
	case FATHOM_KIND_STRING:
		fathom_put_string(d, value);
		break;
	case FATHOM_KIND_POINTER_OUT_ALWAYS:
		fathom_put_pointer(d, type->a, value);
		break;
	/* After a call that has failed, strace follows no pointer any more. */
	case FATHOM_KIND_POINTER:
	case FATHOM_KIND_POINTER_OUT:
		if (fathom_decode_has_failed(d))
			fathom_put_address(d, value);
		else
			fathom_put_pointer(d, type->a, value);
		break;
	case FATHOM_KIND_POINTER_BOTH:
		put_both_halves(d, type, value);
		break;
	case FATHOM_KIND_FUNCTION:
	case FATHOM_KIND_FUNCTION_OUT:
	case FATHOM_KIND_FUNCTION_BOTH:
		put_function(d, type, o, value);
		break;
	case FATHOM_KIND_STRUCT:
		if (o->bytes)
			put_struct(d, &fathom_type_structs[type->a], o->bytes, o->avma);
		break;
	case FATHOM_KIND_ARRAY:
		if (o->bytes && type->width == FATHOM_COUNT_FIXED)
			put_inner_array(d, type, o);
		break;
	default:
		break;
	}
}

/* Constants below 0 are 64 bits wide in the tables. */
static void put_enum(struct fathom_decoder *d, const struct fathom_type *type, uint64_t value)
{
	const enum fathom_constant_table table = (enum fathom_constant_table)type->a;
	const uint64_t wide = (uint64_t)(int64_t)(int32_t)value;

	fathom_put_enum(d, table,
			type->width == 4 && fathom_constant_name(table, d->arch, wide) ? wide
										       : value);
}

/* Prints identifiers, descriptors and constants; false if it is of another kind. */
static bool put_named(struct fathom_decoder *d, const struct fathom_type *type, uint64_t value)
{
	switch (type->kind) {
	case FATHOM_KIND_DESCRIPTOR:
		fathom_put_fd(d, (int32_t)value);
		return true;
	case FATHOM_KIND_DIRECTORY:
		fathom_put_dirfd(d, (int32_t)value);
		return true;
	case FATHOM_KIND_PID:
		fathom_put_signed(d, (int32_t)value);
		return true;
	case FATHOM_KIND_UID:
		fathom_put_uid(d, type->width == 2 && value == UINT16_MAX ? UINT32_MAX
									  : (uint32_t)value);
		return true;
	case FATHOM_KIND_SIGNAL:
		fathom_put_signal(d, (int32_t)value);
		return true;
	case FATHOM_KIND_MODE:
		fathom_put_mode(d, (uint32_t)value);
		return true;
	case FATHOM_KIND_PERMISSIONS:
		fathom_put_octal(d, value, 3);
		return true;
	case FATHOM_KIND_FLAGS:
		fathom_put_flags(d, (enum fathom_constant_table)type->a, value);
		return true;
	case FATHOM_KIND_ENUM:
		put_enum(d, type, value);
		return true;
	default:
		return false;
	}
}

void fathom_put_value(struct fathom_decoder *d, uint16_t number, const struct fathom_operand *o)
{
	const struct fathom_type *type = &fathom_types[number];
	const bool has_number =
		type->width && type->kind != FATHOM_KIND_STRUCT && type->kind != FATHOM_KIND_ARRAY;
	uint64_t value = o->value;

	/* Plain numbers need no memory. */
	if (!fathom_decode_step(d) || (!d->out && type->kind <= FATHOM_KIND_ENUM))
		return;
	if (o->bytes && has_number && !(type->kind == FATHOM_KIND_FUNCTION && type->n))
		value = fathom_decode_load(d, o->bytes, type->width);
	if (has_number)
		value = cut(d, value, type->width);
	switch (type->kind) {
	case FATHOM_KIND_SIGNED:
		fathom_put_signed(d, signed_value(d, value, type->width));
		break;
	case FATHOM_KIND_UNSIGNED:
		fathom_put_unsigned(d, value);
		break;
	case FATHOM_KIND_HEX:
		fathom_put_hex(d, value);
		break;
	case FATHOM_KIND_OCTAL:
		fathom_put_octal(d, value, 1);
		break;
	case FATHOM_KIND_SIZE:
		fathom_put_size(d, value);
		break;
	case FATHOM_KIND_ADDRESS:
		fathom_put_address(d, value);
		break;
	default:
		if (!put_named(d, type, value))
			put_compound(d, type, o, value);
	}
}

bool fathom_put_at(struct fathom_decoder *d, uint16_t number, uint64_t avma)
{
	const struct fathom_type *type = &fathom_types[number];
	const uint16_t size = fathom_type_sizes[number][d->layout];
	uint8_t bytes[FATHOM_DECODE_STRUCT];
	const struct fathom_operand o = { .bytes = bytes, .avma = avma, .type = number };

	if (type->kind == FATHOM_KIND_STRUCT && size > sizeof bytes)
		return false;
	if (!fathom_decode_get(d, avma, bytes, size))
		return false;
	fathom_put_value(d, number, &o);
	return true;
}

void fathom_put_array(struct fathom_decoder *d, uint64_t avma, uint64_t n, size_t size,
		      fathom_put_element_fn *put)
{
	const uint64_t limit = d->is_verbose ? FATHOM_DECODE_ELEMENTS : d->options->string_limit;
	uint64_t i;

	if (!avma) {
		fathom_put_address(d, avma);
		return;
	}
	if (!n) {
		fathom_put(d, "[]");
		return;
	}
	for (i = 0; i < n && i < limit && fathom_decode_step(d); i++) {
		const size_t len = d->out ? d->out->len : 0;

		fathom_put(d, i ? ", " : "[");
		if (put(d, avma + i * size, i))
			continue;
		if (d->out)
			d->out->len = len;
		if (!i) {
			fathom_put_address(d, avma);
			return;
		}
		fathom_put(d, ", ... /* ");
		fathom_put_address(d, avma + i * size);
		fathom_put(d, " */]");
		return;
	}
	fathom_put(d, i < n ? (i ? ", ...]" : "[...]") : "]");
}

/* Prints an element of the array that is being printed. */
static bool put_typed_element(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return fathom_put_at(d, d->element, avma);
}

void fathom_put_pointer(struct fathom_decoder *d, uint16_t number, uint64_t avma)
{
	const struct fathom_type *type = &fathom_types[number];
	const struct fathom_operand o = { .value = avma, .type = number };

	if (!avma) {
		fathom_put_address(d, avma);
	} else if (type->kind == FATHOM_KIND_FUNCTION) {
		put_function(d, type, &o, avma);
	} else if (type->kind == FATHOM_KIND_ARRAY) {
		d->element = type->a;
		fathom_put_array(d, avma,
				 type->width == FATHOM_COUNT_FIXED
					 ? type->n
					 : fathom_decode_count(d, type->width),
				 fathom_type_sizes[type->a][d->layout], put_typed_element);
	} else if (!fathom_put_at(d, number, avma)) {
		fathom_put_address(d, avma);
	}
}
