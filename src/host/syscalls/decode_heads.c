/* SPDX-License-Identifier: MIT */
/*
 * Large structs that grow from kernel to kernel, as far as people look at them: those of bpf(2),
 * perf_event_open(2), io_uring_setup(2), name_to_handle_at(2) and io_submit(2). Offsets are those
 * of linux/bpf.h, linux/perf_event.h, linux/io_uring.h, linux/aio_abi.h, alike on all machines. Not
 * handled: commands of bpf(2) whose structs the kernel changes, or that have structs inside.
 */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

enum kind { DECIMAL, HEX, ADDRESS, FLAGS, ENUM, DESCRIPTOR, PATH, STRING, NAME, VERSION };

/* A member; it is there if the struct that was passed reaches so far. */
struct member {
	const char *name;
	uint8_t off;
	uint8_t width;
	enum kind kind;
	enum fathom_constant_table table;
};

#define BPF_NAME 16 /* BPF_OBJ_NAME_LEN */

static const struct member new_map[] = {
	{ "map_type=", 0, 4, ENUM, FATHOM_CONSTANTS_BPF_MAP_TYPES },
	{ "key_size=", 4, 4, DECIMAL, 0 },
	{ "value_size=", 8, 4, DECIMAL, 0 },
	{ "max_entries=", 12, 4, DECIMAL, 0 },
	{ "map_flags=", 16, 4, FLAGS, FATHOM_CONSTANTS_BPF_MAP_FLAGS },
	{ "inner_map_fd=", 20, 4, DESCRIPTOR, 0 },
	{ "map_name=", 28, BPF_NAME, NAME, 0 },
	{ "map_ifindex=", 44, 4, DECIMAL, 0 },
	{ "btf_fd=", 48, 4, DESCRIPTOR, 0 },
	{ "btf_key_type_id=", 52, 4, DECIMAL, 0 },
	{ "btf_value_type_id=", 56, 4, DECIMAL, 0 },
	{ "btf_vmlinux_value_type_id=", 60, 4, DECIMAL, 0 },
	{ "map_extra=", 64, 8, DECIMAL, 0 },
};

static const struct member element[] = {
	{ "map_fd=", 0, 4, DESCRIPTOR, 0 },
	{ "key=", 8, 8, ADDRESS, 0 },
	{ "value=", 16, 8, ADDRESS, 0 },
	{ "flags=", 24, 8, FLAGS, FATHOM_CONSTANTS_BPF_UPDATE_FLAGS },
};

static const struct member looked_up[] = {
	{ "map_fd=", 0, 4, DESCRIPTOR, 0 },
	{ "key=", 8, 8, ADDRESS, 0 },
	{ "value=", 16, 8, ADDRESS, 0 },
	{ "flags=", 24, 8, FLAGS, FATHOM_CONSTANTS_BPF_LOOKUP_FLAGS },
};

static const struct member new_program[] = {
	{ "prog_type=", 0, 4, ENUM, FATHOM_CONSTANTS_BPF_PROGRAM_TYPES },
	{ "insn_cnt=", 4, 4, DECIMAL, 0 },
	{ "insns=", 8, 8, ADDRESS, 0 },
	{ "license=", 16, 8, STRING, 0 },
	{ "log_level=", 24, 4, DECIMAL, 0 },
	{ "log_size=", 28, 4, DECIMAL, 0 },
	{ "log_buf=", 32, 8, ADDRESS, 0 },
	{ "kern_version=", 40, 4, VERSION, 0 },
	{ "prog_flags=", 44, 4, FLAGS, FATHOM_CONSTANTS_BPF_PROGRAM_FLAGS },
	{ "prog_name=", 48, BPF_NAME, NAME, 0 },
	{ "prog_ifindex=", 64, 4, DECIMAL, 0 },
};

static const struct member object[] = {
	{ "pathname=", 0, 8, PATH, 0 },
	{ "bpf_fd=", 8, 4, DESCRIPTOR, 0 },
	{ "file_flags=", 12, 4, FLAGS, FATHOM_CONSTANTS_BPF_MAP_FLAGS },
};

static const struct member next_key[] = {
	{ "map_fd=", 0, 4, DESCRIPTOR, 0 },
	{ "key=", 8, 8, ADDRESS, 0 },
	{ "next_key=", 16, 8, ADDRESS, 0 },
};

static const struct member attached[] = {
	{ "target_fd=", 0, 4, DESCRIPTOR, 0 },
	{ "attach_bpf_fd=", 4, 4, DESCRIPTOR, 0 },
	{ "attach_type=", 8, 4, ENUM, FATHOM_CONSTANTS_BPF_ATTACH_TYPES },
	{ "attach_flags=", 12, 4, FLAGS, FATHOM_CONSTANTS_BPF_ATTACH_FLAGS },
	{ "replace_bpf_fd=", 16, 4, DESCRIPTOR, 0 },
};

static const struct member detached[] = {
	{ "target_fd=", 0, 4, DESCRIPTOR, 0 },
	{ "attach_type=", 8, 4, ENUM, FATHOM_CONSTANTS_BPF_ATTACH_TYPES },
};

static const struct member program_id[] = {
	{ "prog_id=", 0, 4, DECIMAL, 0 },
	{ "next_id=", 4, 4, DECIMAL, 0 },
	{ "open_flags=", 8, 4, FLAGS, FATHOM_CONSTANTS_BPF_OPEN_FLAGS },
};

static const struct member map_id[] = {
	{ "map_id=", 0, 4, DECIMAL, 0 },
	{ "next_id=", 4, 4, DECIMAL, 0 },
	{ "open_flags=", 8, 4, FLAGS, FATHOM_CONSTANTS_BPF_OPEN_FLAGS },
};

static const struct member types_id[] = { { "btf_id=", 0, 4, DECIMAL, 0 } };
static const struct member link_id[] = { { "link_id=", 0, 4, DECIMAL, 0 } };

static void put_version(struct fathom_decoder *d, uint32_t value)
{
	fathom_put(d, "KERNEL_VERSION(");
	fathom_put_unsigned(d, value >> 16);
	fathom_put(d, ", ");
	fathom_put_unsigned(d, value >> 8 & 0xff);
	fathom_put(d, ", ");
	fathom_put_unsigned(d, value & 0xff);
	fathom_put_char(d, ')');
}

static void put_name(struct fathom_decoder *d, const uint8_t *bytes, size_t n)
{
	const uint8_t *end = memchr(bytes, 0, n);

	fathom_put_quoted(d, bytes, end ? (size_t)(end - bytes) : n, false);
}

static void put_member(struct fathom_decoder *d, const struct member *m, const uint8_t *bytes)
{
	const uint64_t value =
		m->kind == NAME ? 0 : fathom_decode_load(d, bytes + m->off, m->width);

	switch (m->kind) {
	case DECIMAL:
		fathom_put_unsigned(d, value);
		break;
	case HEX:
		fathom_put_hex(d, value);
		break;
	case ADDRESS:
		fathom_put_address(d, value);
		break;
	case FLAGS:
		fathom_put_flags(d, m->table, value);
		break;
	case ENUM:
		fathom_put_enum(d, m->table, value);
		break;
	case DESCRIPTOR:
		fathom_put_fd(d, (int32_t)value);
		break;
	case PATH:
		fathom_put_path(d, value);
		break;
	case STRING:
		fathom_put_string(d, value);
		break;
	case NAME:
		put_name(d, bytes + m->off, m->width);
		break;
	case VERSION:
		put_version(d, (uint32_t)value);
	}
}

/* Ends a struct after whose members there is something other than zeros. */
static void put_rest(struct fathom_decoder *d, const uint8_t *bytes, size_t end, size_t n)
{
	size_t i = end;

	while (i < n && !bytes[i])
		i++;
	if (i < n && d->is_verbose && d->options->dialect == FATHOM_SYSCALL_STRACE) {
		fathom_put(d, ", extra_data=");
		fathom_put_quoted_hex(d, bytes + end, n - end, false);
		fathom_put(d, " /* bytes ");
		fathom_put_unsigned(d, end);
		fathom_put(d, "..");
		fathom_put_unsigned(d, n - 1);
		fathom_put(d, " */}");
	} else {
		fathom_put(d, i < n ? ", ...}" : "}");
	}
}

/* Prints the members that lie in the first @size bytes at @avma, and whether more is set there. */
static void put_members(struct fathom_decoder *d, uint64_t avma, uint64_t size,
			const struct member *members, size_t n)
{
	uint8_t bytes[128] = { 0 };
	const size_t known = size < sizeof bytes ? (size_t)size : sizeof bytes;
	size_t end = 0;

	if (!avma || !n || size < members[0].width || !fathom_decode_get(d, avma, bytes, known)) {
		fathom_put_address(d, avma);
		return;
	}
	for (size_t i = 0; i < n && members[i].off < known; i++) {
		fathom_put(d, i ? ", " : "{");
		fathom_put(d, members[i].name);
		put_member(d, &members[i], bytes);
		end = (size_t)members[i].off + members[i].width;
	}
	put_rest(d, bytes, end, known);
}

#define PUT_MEMBERS(d, avma, size, members) \
	put_members((d), (avma), (size), (members), sizeof(members) / sizeof *(members))

void fathom_decode_bpf(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint64_t size = (uint32_t)d->call.args[2];

	switch (fathom_decode_int(d, 0)) {
	case 0: /* BPF_MAP_CREATE */
		PUT_MEMBERS(d, o->value, size, new_map);
		break;
	case 1: /* BPF_MAP_LOOKUP_ELEM */
		PUT_MEMBERS(d, o->value, size, looked_up);
		break;
	case 2: /* BPF_MAP_UPDATE_ELEM */
		PUT_MEMBERS(d, o->value, size, element);
		break;
	case 3: /* BPF_MAP_DELETE_ELEM */
		put_members(d, o->value, size, element, 2);
		break;
	case 4: /* BPF_MAP_GET_NEXT_KEY */
		PUT_MEMBERS(d, o->value, size, next_key);
		break;
	case 8: /* BPF_PROG_ATTACH */
		PUT_MEMBERS(d, o->value, size, attached);
		break;
	case 9: /* BPF_PROG_DETACH */
		PUT_MEMBERS(d, o->value, size, detached);
		break;
	case 13: /* BPF_PROG_GET_FD_BY_ID */
		PUT_MEMBERS(d, o->value, size, program_id);
		break;
	case 14: /* BPF_MAP_GET_FD_BY_ID */
		PUT_MEMBERS(d, o->value, size, map_id);
		break;
	case 19: /* BPF_BTF_GET_FD_BY_ID */
		PUT_MEMBERS(d, o->value, size, types_id);
		break;
	case 21: /* BPF_MAP_LOOKUP_AND_DELETE_ELEM */
		PUT_MEMBERS(d, o->value, size, looked_up);
		break;
	case 22: /* BPF_MAP_FREEZE */
		put_members(d, o->value, size, element, 1);
		break;
	case 30: /* BPF_LINK_GET_FD_BY_ID */
		PUT_MEMBERS(d, o->value, size, link_id);
		break;
	case 5: /* BPF_PROG_LOAD */
		PUT_MEMBERS(d, o->value, size, new_program);
		break;
	case 6: /* BPF_OBJ_PIN */
	case 7: /* BPF_OBJ_GET */
		PUT_MEMBERS(d, o->value, size, object);
		break;
	default:
		fathom_put_address(d, o->value);
	}
}

static const struct member ring_wanted[] = {
	{ "flags=", 8, 4, FLAGS, FATHOM_CONSTANTS_IO_URING_SETUP },
	{ "sq_thread_cpu=", 12, 4, DECIMAL, 0 },
	{ "sq_thread_idle=", 16, 4, DECIMAL, 0 },
};

static const struct member ring_made[] = {
	{ ", sq_entries=", 0, 4, DECIMAL, 0 },
	{ ", cq_entries=", 4, 4, DECIMAL, 0 },
	{ ", features=", 20, 4, FLAGS, FATHOM_CONSTANTS_IO_URING_FEATURES },
	{ ", sq_off={head=", 40, 4, DECIMAL, 0 },
	{ ", tail=", 44, 4, DECIMAL, 0 },
	{ ", ring_mask=", 48, 4, DECIMAL, 0 },
	{ ", ring_entries=", 52, 4, DECIMAL, 0 },
	{ ", flags=", 56, 4, DECIMAL, 0 },
	{ ", dropped=", 60, 4, DECIMAL, 0 },
	{ ", array=", 64, 4, DECIMAL, 0 },
	{ "}, cq_off={head=", 80, 4, DECIMAL, 0 },
	{ ", tail=", 84, 4, DECIMAL, 0 },
	{ ", ring_mask=", 88, 4, DECIMAL, 0 },
	{ ", ring_entries=", 92, 4, DECIMAL, 0 },
	{ ", overflow=", 96, 4, DECIMAL, 0 },
	{ ", cqes=", 100, 4, DECIMAL, 0 },
	{ ", flags=", 104, 4, DECIMAL, 0 },
};

/* struct io_uring_params: what was wanted, and, if the call did not fail, what was made. */
void fathom_decode_ring(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[120];

	if (!o->value || !fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	for (size_t i = 0; i < sizeof ring_wanted / sizeof *ring_wanted; i++) {
		fathom_put(d, i ? ", " : "{");
		fathom_put(d, ring_wanted[i].name);
		put_member(d, &ring_wanted[i], bytes);
	}
	for (size_t i = 0; !fathom_decode_has_failed(d) && i < sizeof ring_made / sizeof *ring_made;
	     i++) {
		fathom_put(d, ring_made[i].name);
		put_member(d, &ring_made[i], bytes);
	}
	fathom_put(d, fathom_decode_has_failed(d) ? "}" : "}}");
}

/* MAX_HANDLE_SZ of linux/exportfs.h. */
#define HANDLE 128

/* struct file_handle: the size of the room, which becomes that of the handle; type; bytes. */
void fathom_decode_handle(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[8 + HANDLE];
	uint8_t before[4];
	uint64_t size;

	if (!o->value || !fathom_decode_get_uint(d, o->value, 4, &size) || !d->at_exit ||
	    !fathom_decode_get_before(d, o->value, before, sizeof before)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{handle_bytes=");
	fathom_put_unsigned(d, load_u32(before, false));
	/* EOVERFLOW: the room was too small. */
	if (size != load_u32(before, false) && (d->call.result == 0 || d->call.result == -75)) {
		fathom_put(d, " => ");
		fathom_put_unsigned(d, size);
	}
	if (!fathom_decode_has_failed(d) && size <= HANDLE &&
	    fathom_decode_get(d, o->value, bytes, 8 + (size_t)size)) {
		fathom_put(d, ", handle_type=");
		fathom_put_signed(d, (int32_t)load_u32(bytes + 4, false));
		fathom_put(d, ", f_handle=");
		fathom_put_quoted_hex(d, bytes + 8, (size_t)size, false);
	}
	fathom_put_char(d, '}');
}

/* struct iocb, to which an array points. */
static const struct member block[] = {
	{ "aio_data=", 0, 8, HEX, 0 },
	{ "aio_lio_opcode=", 16, 2, ENUM, FATHOM_CONSTANTS_IOCB_COMMANDS },
	{ "aio_fildes=", 20, 4, DESCRIPTOR, 0 },
	{ "aio_buf=", 24, 8, ADDRESS, 0 },
	{ "aio_nbytes=", 32, 8, DECIMAL, 0 },
	{ "aio_offset=", 40, 8, DECIMAL, 0 },
};

#define BLOCK 64

static bool put_block(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint64_t pointer;

	(void)i;
	if (!fathom_decode_get_uint(d, avma, FATHOM_WIDTH_WORD, &pointer))
		return false;
	PUT_MEMBERS(d, pointer, BLOCK, block);
	return true;
}

void fathom_decode_blocks(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_array(d, o->value, fathom_decode_count(d, o->n), d->word, put_block);
}
