/* SPDX-License-Identifier: MIT */
#include "host/syscalls/plan_ranges.h"

#include <elf.h>

#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

/* Sizes of structs of x86-64, and of what the functions read of them. */
enum {
	POLLFD = 8,
	EPOLL_EVENT = 12,
	GENERIC_EPOLL_EVENT = 16, /* of aarch64 */
	GENERIC_STAT = 128,
	SOCKADDR = 128,
	IOVEC = 16,
	MSGHDR = 56,
	MMSGHDR = 64,
	CONTROL = 1024,   /* of control messages */
	FDSET = 512,      /* of a set of descriptors */
	OPTION = 144,     /* of the longest value of an option of a socket that has members */
	HANDLE = 8 + 128, /* struct file_handle with its bytes */
	AFFINITY = FATHOM_DECODE_STRUCT,
	BLOCK = 64, /* struct iocb */
	DEDUPE = 24,
	DEDUPE_RANGE = 32,
	INTERFACE = 40, /* struct ifreq */
	PERF_FIRST = 64,
	PERF_ATTR = 136,
	STATUS = 120, /* of System V's IPC */
};

/* Offsets in struct msghdr. */
enum {
	MSG_NAME = 0,
	MSG_NAMELEN = 8,
	MSG_IOV = 16,
	MSG_IOVLEN = 24,
	MSG_CONTROL = 32,
	MSG_CONTROLLEN = 40
};

/* Most bytes of one range: what is before it in an event has room, too. */
#define MOST ((uint64_t)FATHOM_TRACE_SYSCALL_BYTES - 256)

/* Functions that show the number that they are given, without memory. */
static fathom_decode_fn *const plain_functions[] = {
	fathom_decode_open_flags,
	fathom_decode_dev,
	fathom_decode_position,
	fathom_decode_mmap_flags,
	fathom_decode_pgoff,
	fathom_decode_statx_flags,
	fathom_decode_memfd_flags,
	fathom_decode_mmap_flags_only,
	fathom_decode_mempolicy,
	fathom_decode_socket_type,
	fathom_decode_socket_protocol,
	fathom_decode_socket_flags,
	fathom_decode_socket_level,
	fathom_decode_socket_option,
	fathom_decode_recvmmsg_left,
	fathom_decode_futex_op,
	fathom_decode_futex_bitset,
	fathom_decode_futex_wake_op,
	fathom_decode_open_flags_only,
	fathom_decode_ioctl_request,
	fathom_decode_fd_flags_result,
	fathom_decode_open_flags_result,
	fathom_decode_signal_result,
	fathom_decode_lease_result,
	fathom_decode_seals_result,
	fathom_decode_namespace_type,
	fathom_decode_ipc_key,
	fathom_decode_ipc_get,
	fathom_decode_shm_get,
	fathom_decode_shm_command,
	fathom_decode_sem_command,
	fathom_decode_sem_value,
	fathom_decode_msg_command,
	fathom_decode_sched_policy,
	fathom_decode_membarrier_result,
	fathom_decode_ioprio,
	fathom_decode_ioprio_in,
	fathom_decode_swap_flags,
	fathom_decode_quota_command,
	fathom_decode_fanotify_init,
	fathom_decode_fanotify_mark,
	fathom_decode_syslog_action,
	fathom_decode_kexec_flags,
	fathom_decode_key,
	fathom_decode_key_error,
	fathom_decode_key_default,
	fathom_decode_timex_state,
	fathom_decode_dumpable,
	fathom_decode_securebits,
	fathom_decode_ptracer,
	fathom_decode_ambient_cap,
	fathom_decode_timing,
	fathom_decode_mce_policy,
};

/* Functions of fields, which read what is in the struct that they are a part of. */
static fathom_decode_fn *const field_functions[] = {
	fathom_decode_name,
	fathom_decode_rlimit,
	fathom_decode_rlimit64,
	fathom_decode_ticks,
	fathom_decode_statx_time,
	fathom_decode_open_flags,
	fathom_decode_open_how_mode,
	fathom_decode_dev,
	fathom_decode_in_addr,
	fathom_decode_socket_address,
	fathom_decode_hardware_address,
	fathom_decode_loop_key,
	fathom_decode_loop_status,
	fathom_decode_uffd_range_requests,
	fathom_decode_mount_attributes,
	fathom_decode_tls_entry,
	fathom_decode_tls_flags,
};

/*
 * Functions that read so many bytes, unless the address is NULL: before the call, or after it as
 * `when` says where they are called then.
 */
static const struct {
	fathom_decode_fn *fn;
	uint8_t when;
	uint8_t size;
} structs[] = {
	{ fathom_decode_stat, FATHOM_TRACE_AFTER_SUCCESS, 144 },
	{ fathom_decode_sigset, FATHOM_TRACE_AFTER_SUCCESS, 8 },
	{ fathom_decode_sigaction, FATHOM_TRACE_AFTER_SUCCESS, 32 },
	{ fathom_decode_epoll_event, FATHOM_TRACE_AFTER_SUCCESS, EPOLL_EVENT },
	{ fathom_decode_remaining, FATHOM_TRACE_AFTER, 16 },
	{ fathom_decode_wait_status, FATHOM_TRACE_AFTER_SUCCESS, 4 },
	{ fathom_decode_wait_rusage, FATHOM_TRACE_AFTER_SUCCESS, 144 },
	{ fathom_decode_wait_siginfo, FATHOM_TRACE_AFTER_SUCCESS, 128 },
	{ fathom_decode_siginfo, FATHOM_TRACE_AFTER_SUCCESS, 128 },
	{ fathom_decode_sigevent, FATHOM_TRACE_AFTER_SUCCESS, 32 },
	{ fathom_decode_timespec64, FATHOM_TRACE_AFTER_SUCCESS, 16 },
	{ fathom_decode_time_result, FATHOM_TRACE_AFTER_SUCCESS, 8 },
	{ fathom_decode_open_how, FATHOM_TRACE_AFTER_SUCCESS, 24 },
	{ fathom_decode_utimbuf, FATHOM_TRACE_AFTER_SUCCESS, 16 },
	{ fathom_decode_utimes, FATHOM_TRACE_AFTER_SUCCESS, 32 },
	{ fathom_decode_utimens, FATHOM_TRACE_AFTER_SUCCESS, 32 },
	{ fathom_decode_loff, FATHOM_TRACE_AFTER, 8 },
	{ fathom_decode_ring, FATHOM_TRACE_AFTER, 120 },
	{ fathom_decode_landlock_ruleset, FATHOM_TRACE_AFTER_SUCCESS, 8 },
	{ fathom_decode_cap_header, FATHOM_TRACE_AFTER_SUCCESS, 8 },
	{ fathom_decode_termios, FATHOM_TRACE_AFTER_SUCCESS, 36 },
	{ fathom_decode_termios2, FATHOM_TRACE_AFTER_SUCCESS, 44 },
	{ fathom_decode_termio, FATHOM_TRACE_AFTER_SUCCESS, 17 },
	{ fathom_decode_one_byte, FATHOM_TRACE_AFTER_SUCCESS, 1 },
	{ fathom_decode_interface_name, FATHOM_TRACE_AFTER_SUCCESS, 20 },
	{ fathom_decode_loop_status, FATHOM_TRACE_AFTER_SUCCESS, 232 },
	{ fathom_decode_uffd_api, FATHOM_TRACE_AFTER_SUCCESS, 24 },
	{ fathom_decode_kvm_registers, FATHOM_TRACE_AFTER_SUCCESS, 144 },
	{ fathom_decode_shm_status, FATHOM_TRACE_AFTER_SUCCESS, STATUS },
	{ fathom_decode_shm_set, FATHOM_TRACE_AFTER_SUCCESS, STATUS },
	{ fathom_decode_msg_status, FATHOM_TRACE_AFTER_SUCCESS, STATUS },
	{ fathom_decode_msg_set, FATHOM_TRACE_AFTER_SUCCESS, STATUS },
	{ fathom_decode_sem_status, FATHOM_TRACE_AFTER_SUCCESS, STATUS },
	{ fathom_decode_sem_set, FATHOM_TRACE_AFTER_SUCCESS, STATUS },
};

static bool is_in(fathom_decode_fn *const *functions, size_t n, fathom_decode_fn *fn)
{
	for (size_t i = 0; i < n; i++)
		if (functions[i] == fn)
			return true;
	return false;
}

static bool is_plain_function(fathom_decode_fn *fn)
{
	return is_in(plain_functions, sizeof plain_functions / sizeof *plain_functions, fn);
}

uint16_t fathom_plan_string_size(const struct fathom_syscall_options *o)
{
	return (uint16_t)(o->string_limit < FATHOM_DECODE_PATH - 1 ? o->string_limit + 1
								   : FATHOM_DECODE_PATH);
}

/* Adds a range of the argument, or of the range that it is inner to; NULL if there is no room. */
static struct fathom_capture_range *add(struct fathom_plan_making *m, enum fathom_trace_when when,
					struct fathom_capture_range range)
{
	if (m->n == FATHOM_PLAN_RANGES || !range.size || range.size > range.most)
		return NULL;
	if (range.from < FATHOM_TRACE_FROM_FIELD)
		range.from = (uint8_t)m->argument;
	if (!range.width)
		range.width = 8;
	range.when = (uint8_t)(m->is_late && !m->is_both && when == FATHOM_TRACE_BEFORE
				       ? FATHOM_TRACE_AFTER
				       : when);
	m->ranges[m->n] = range;
	return &m->ranges[m->n++];
}

static bool add_bytes(struct fathom_plan_making *m, enum fathom_trace_when when, uint32_t size)
{
	const struct fathom_capture_range range = { .count = FATHOM_TRACE_COUNT_ONE,
						    .size = (uint16_t)size,
						    .most = (uint16_t)size };

	return size <= FATHOM_DECODE_STRUCT && add(m, when, range);
}

/* Returns up to @most bytes, of which there are @count. */
static struct fathom_capture_range counted(unsigned count, uint32_t most)
{
	return (struct fathom_capture_range){ .count = (uint8_t)count,
					      .size = 1,
					      .most = (uint16_t)most };
}

/*
 * Returns as many elements of @size bytes as are shown, of which there are @count. Where so many
 * have no room, the tracer records the call.
 */
static struct fathom_capture_range elements(const struct fathom_plan_making *m, unsigned count,
					    uint16_t size)
{
	const uint64_t limit = m->options->is_verbose ? (uint64_t)FATHOM_DECODE_ELEMENTS
						      : m->options->string_limit;
	const bool has_room = limit * size <= MOST;
	struct fathom_capture_range range = { .count = (uint8_t)count, .size = size };

	range.flags = has_room ? 0 : FATHOM_TRACE_WHOLE;
	range.most = (uint16_t)(has_room ? limit * size : MOST / size * size);
	/* Whether the first one can be read is told without any, too. */
	if (range.most < size)
		range.most = size;
	return range;
}

bool fathom_plan_add_string(struct fathom_plan_making *m, enum fathom_trace_when when,
			    uint16_t most)
{
	const struct fathom_capture_range range = { .flags = FATHOM_TRACE_STRING,
						    .size = 1,
						    .most = most };

	return add(m, when, range);
}

/* Returns whether values of type @number refer to no other memory. */
static bool is_plain(const struct fathom_plan_making *m, uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];

	if (m->names_files &&
	    (type->kind == FATHOM_KIND_DESCRIPTOR || type->kind == FATHOM_KIND_DIRECTORY))
		return false;
	if (type->kind <= FATHOM_KIND_ENUM || type->kind == FATHOM_KIND_PADDING)
		return true;
	if (type->kind == FATHOM_KIND_FUNCTION)
		return is_in(field_functions, sizeof field_functions / sizeof *field_functions,
			     fathom_decode_functions[type->a]);
	if (type->kind == FATHOM_KIND_ARRAY)
		return type->width == FATHOM_COUNT_FIXED && is_plain(m, type->a);
	if (type->kind != FATHOM_KIND_STRUCT)
		return false;
	for (const struct fathom_type_field *f =
		     &fathom_type_fields[fathom_type_structs[type->a].first];
	     f < &fathom_type_fields[fathom_type_structs[type->a].first] +
			 fathom_type_structs[type->a].n;
	     f++)
		if (!is_plain(m, f->type))
			return false;
	return true;
}

/* Returns the bytes of what row @i is of: struct epoll_event is packed on x86-64. */
static uint16_t struct_size(const struct fathom_plan_making *m, size_t i)
{
	if (m->machine == EM_X86_64)
		return structs[i].size;
	return structs[i].fn == fathom_decode_stat          ? GENERIC_STAT
	       : structs[i].fn == fathom_decode_epoll_event ? GENERIC_EPOLL_EVENT
							    : structs[i].size;
}

/* Adds the argument that a pointer to what @fn shows is; @when, as the type of the pointer says. */
static bool add_struct(struct fathom_plan_making *m, enum fathom_trace_when when,
		       fathom_decode_fn *fn)
{
	for (size_t i = 0; i < sizeof structs / sizeof *structs; i++)
		if (structs[i].fn == fn)
			return add_bytes(m, when, struct_size(m, i));
	return false;
}

/* Adds elements of @size bytes at @plus after those of the range before, inner to it. */
static bool add_behind(struct fathom_plan_making *m, enum fathom_trace_when when, uint8_t plus,
		       struct fathom_capture_range range, uint16_t count_at, uint8_t width)
{
	struct fathom_capture_range *head = &m->ranges[m->n - 1];

	range.from = FATHOM_TRACE_FROM_ELEMENT;
	range.count = FATHOM_TRACE_COUNT_FIELD;
	range.count_at = count_at;
	range.width = width;
	range.plus = plus;
	head->n_inner = 1;
	return add(m, when, range);
}

/* Adds the ranges of FIDEDUPERANGE, after their head. */
static bool add_dedupe(struct fathom_plan_making *m, enum fathom_trace_when when)
{
	const struct fathom_capture_range ranges = { .size = DEDUPE_RANGE,
						     .most = 2 * DEDUPE_RANGE };

	/* In the head: how many there are. */
	return !m->options->is_verbose && add_bytes(m, when, DEDUPE) &&
	       add_behind(m, when, DEDUPE, ranges, 16, 2);
}

/* Adds what some requests of ioctl() point to; *@ret_is_known: @fn is one of those. */
static bool add_request(struct fathom_plan_making *m, enum fathom_trace_when when,
			fathom_decode_fn *fn, bool *ret_is_known)
{
	const bool is_verbose = m->options->is_verbose;

	*ret_is_known = true;
	if (fn == fathom_decode_dedupe_asked || fn == fathom_decode_dedupe_done)
		return (fn != fathom_decode_dedupe_asked || !m->names_files) && add_dedupe(m, when);
	if (fn == fathom_decode_fiemap_found)
		return !is_verbose && add_bytes(m, when, 32);
	if (fn == fathom_decode_kvm_cpuids)
		return !is_verbose && add_bytes(m, when, 4);
	if (fn == fathom_decode_entropy)
		return add_bytes(m, when, 8) &&
		       add_behind(m, when, 8, counted(0, fathom_plan_string_size(m->options)), 4,
				  4);
	if (fn == fathom_decode_perf_programs)
		return when == FATHOM_TRACE_BEFORE
			       ? add_bytes(m, when, 4)
			       : add_bytes(m, when, 8) &&
					 add_behind(m, when, 8, elements(m, 0, 4), 4, 4);
	if (fn == fathom_decode_perf_attr)
		return add_bytes(m, when, PERF_FIRST) &&
		       add_behind(m, when, 0, counted(0, PERF_ATTR), 4, 4);
	if (fn == fathom_decode_label)
		return fathom_plan_add_string(m, when, 256);
	*ret_is_known = false;
	return false;
}

bool fathom_plan_add_pointed(struct fathom_plan_making *m, enum fathom_trace_when when,
			     uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];
	struct fathom_capture_range range;
	bool is_known;
	bool is_added;

	if (type->kind == FATHOM_KIND_FUNCTION) {
		is_added = add_request(m, when, fathom_decode_functions[type->a], &is_known);
		return is_known ? is_added : add_struct(m, when, fathom_decode_functions[type->a]);
	}
	if (type->kind != FATHOM_KIND_ARRAY)
		return is_plain(m, number) && add_bytes(m, when, fathom_type_sizes[number][0]);
	if (!is_plain(m, type->a))
		return false;
	if (type->width == FATHOM_COUNT_FIXED)
		return add_bytes(m, when, type->n * fathom_type_sizes[type->a][0]);
	range = elements(m, type->width, fathom_type_sizes[type->a][0]);
	return add(m, when, range);
}

/* Adds the argument as a call reads or writes it whose buffers are described by structs iovec. */
static bool add_iovecs(struct fathom_plan_making *m, enum fathom_trace_when when,
		       struct fathom_capture_range vectors, bool is_address)
{
	const struct fathom_capture_range data = { .from = FATHOM_TRACE_FROM_FIELD,
						   .flags = FATHOM_TRACE_BOUNDED,
						   .count = FATHOM_TRACE_COUNT_FIELD,
						   .count_at = 8,
						   .size = 1,
						   .most = fathom_plan_string_size(m->options) };
	struct fathom_capture_range *outer = add(m, when, vectors);

	if (!outer || is_address)
		return outer != NULL;
	outer->n_inner = 1;
	return add(m, when == FATHOM_TRACE_BEFORE ? when : FATHOM_TRACE_AFTER_SUCCESS, data);
}

/*
 * Adds what the struct msghdr points to that the range at @outer is, with so many members before.
 */
static bool add_message_parts(struct fathom_plan_making *m, enum fathom_trace_when when,
			      enum fathom_trace_bound bound)
{
	struct fathom_capture_range name = counted(FATHOM_TRACE_COUNT_FIELD, SOCKADDR);
	struct fathom_capture_range control = counted(FATHOM_TRACE_COUNT_FIELD, CONTROL);
	struct fathom_capture_range vectors = elements(m, FATHOM_TRACE_COUNT_FIELD, IOVEC);

	name.from = control.from = vectors.from = FATHOM_TRACE_FROM_FIELD;
	name.at = MSG_NAME;
	name.count_at = MSG_NAMELEN;
	name.width = 4;
	vectors.at = MSG_IOV;
	vectors.count_at = MSG_IOVLEN;
	vectors.bound = (uint8_t)bound;
	control.at = MSG_CONTROL;
	control.count_at = MSG_CONTROLLEN;
	return add(m, when, name) && add_iovecs(m, when, vectors, false) && add(m, when, control);
}

/* Adds the ranges that @range is the outer one of: a message, or many. */
static bool add_messages(struct fathom_plan_making *m, enum fathom_trace_when when,
			 struct fathom_capture_range range, enum fathom_trace_bound bound)
{
	const unsigned outer = m->n;

	if (!add(m, when, range) ||
	    !add_message_parts(m, when == FATHOM_TRACE_BEFORE ? when : FATHOM_TRACE_AFTER_SUCCESS,
			       bound))
		return false;
	m->ranges[outer].n_inner = (uint8_t)(m->n - outer - 1);
	return true;
}

static bool add_message(struct fathom_plan_making *m, uint8_t kind)
{
	const struct fathom_capture_range one = { .count = FATHOM_TRACE_COUNT_ONE,
						  .size = MSGHDR,
						  .most = MSGHDR };

	/* Descriptors are in control messages. */
	if (m->names_files)
		return false;
	if (kind == FATHOM_KIND_FUNCTION)
		return add_messages(m, FATHOM_TRACE_BEFORE, one, FATHOM_TRACE_BOUND_NOT);
	return add(m, FATHOM_TRACE_BEFORE, one) &&
	       add_messages(m, FATHOM_TRACE_AFTER, one, FATHOM_TRACE_BOUND_RESULT);
}

static bool add_many_messages(struct fathom_plan_making *m)
{
	struct fathom_capture_range before = elements(m, 2, MMSGHDR);
	struct fathom_capture_range after = elements(m, FATHOM_TRACE_COUNT_RESULT, MMSGHDR);

	if (m->names_files)
		return false;
	before.width = 4;
	after.at_most = 3;
	return add(m, FATHOM_TRACE_BEFORE, before) &&
	       add_messages(m, FATHOM_TRACE_AFTER_SUCCESS, after, FATHOM_TRACE_BOUND_FIELD);
}

/* Adds the buffers of readv() and its like. */
static bool add_buffers(struct fathom_plan_making *m, uint8_t kind)
{
	struct fathom_capture_range vectors = elements(m, m->argument + 1, IOVEC);

	if (kind == FATHOM_KIND_FUNCTION)
		/* Those of another process, of process_vm_readv(), are shown as addresses. */
		return add_iovecs(m, FATHOM_TRACE_BEFORE, vectors, m->argument == 3);
	vectors.bound = FATHOM_TRACE_BOUND_RESULT;
	return add_iovecs(m, FATHOM_TRACE_AFTER, vectors, false);
}

/* Adds a set of descriptors, or the same after the call. */
static bool add_set(struct fathom_plan_making *m, enum fathom_trace_when when)
{
	const struct fathom_capture_range set = {
		.count = 0, .width = 4, .shift = 6, .size = 8, .most = FDSET
	};

	return add(m, when, set);
}

/* Adds the sixth argument of pselect6(): a pointer to a set of signals, and its size. */
static bool add_mask_pointer(struct fathom_plan_making *m)
{
	const struct fathom_capture_range set = { .from = FATHOM_TRACE_FROM_FIELD,
						  .count = FATHOM_TRACE_COUNT_ONE,
						  .size = 8,
						  .most = 8 };

	if (!add_bytes(m, FATHOM_TRACE_BEFORE, 16))
		return false;
	m->ranges[m->n - 1].n_inner = 1;
	return add(m, FATHOM_TRACE_BEFORE, set);
}

/* Adds the blocks that an array of pointers leads to. */
static bool add_blocks(struct fathom_plan_making *m, unsigned count)
{
	const struct fathom_capture_range block = { .from = FATHOM_TRACE_FROM_FIELD,
						    .count = FATHOM_TRACE_COUNT_ONE,
						    .size = BLOCK,
						    .most = BLOCK };

	if (m->names_files || !add(m, FATHOM_TRACE_BEFORE, elements(m, count, 8)))
		return false;
	m->ranges[m->n - 1].n_inner = 1;
	return add(m, FATHOM_TRACE_BEFORE, block);
}

/* Adds a message of System V's: its type, and what is after that. */
static bool add_queue_message(struct fathom_plan_making *m, enum fathom_trace_when when,
			      unsigned count)
{
	struct fathom_capture_range text = counted(count, fathom_plan_string_size(m->options));

	text.plus = 8;
	return add_bytes(m, when, 8) && add(m, when, text);
}

/* Adds the structs ifreq of SIOCGIFCONF, whose size in bytes the kernel changes. */
static bool add_interfaces(struct fathom_plan_making *m)
{
	struct fathom_capture_range array = elements(m, FATHOM_TRACE_COUNT_FIELD, INTERFACE);

	array.from = FATHOM_TRACE_FROM_FIELD;
	array.at = 8;
	array.count_at = 0;
	array.width = 4;
	array.size = 1;
	if (!add_bytes(m, FATHOM_TRACE_BEFORE, 16) || !add_bytes(m, FATHOM_TRACE_AFTER_SUCCESS, 16))
		return false;
	m->ranges[m->n - 1].n_inner = 1;
	return add(m, FATHOM_TRACE_AFTER_SUCCESS, array);
}

/* Adds the entries of a directory: all of them, or how many there are. */
static bool add_directory(struct fathom_plan_making *m)
{
	struct fathom_capture_range entries = counted(FATHOM_TRACE_COUNT_RESULT, MOST);

	entries.at_most = 3;
	entries.flags = m->options->is_verbose ? FATHOM_TRACE_WHOLE : FATHOM_TRACE_ENTRIES;
	return add(m, FATHOM_TRACE_AFTER_SUCCESS, entries);
}

/* Adds what the functions of sockets read. */
static bool add_of_socket(struct fathom_plan_making *m, const struct fathom_type *type,
			  bool *ret_is_known)
{
	fathom_decode_fn *const fn = fathom_decode_functions[type->a];
	struct fathom_capture_range range;

	*ret_is_known = true;
	if (fn == fathom_decode_msghdr)
		return add_message(m, type->kind);
	if (fn == fathom_decode_mmsghdrs)
		return add_many_messages(m);
	if (fn == fathom_decode_sockaddr) {
		range = counted(type->n, SOCKADDR);
		range.width = 4;
		return type->n < FATHOM_DECODE_ARGUMENTS && add(m, FATHOM_TRACE_BEFORE, range);
	}
	if (fn == fathom_decode_sockaddr_result) {
		range = counted(FATHOM_TRACE_COUNT_POINTED, SOCKADDR);
		range.count_at = (uint16_t)(m->argument + 1);
		return add(m, FATHOM_TRACE_AFTER_SUCCESS, range);
	}
	if (fn == fathom_decode_length_result)
		return add_bytes(m, FATHOM_TRACE_BEFORE, 4) &&
		       add_bytes(m, FATHOM_TRACE_AFTER_SUCCESS, 4);
	if (fn == fathom_decode_option_value) {
		const uint16_t text = fathom_plan_string_size(m->options);
		const bool is_out = type->kind == FATHOM_KIND_FUNCTION_OUT;

		range = counted(is_out ? FATHOM_TRACE_COUNT_POINTED : 4,
				text > OPTION ? text : OPTION);
		range.count_at = 4;
		range.width = 4;
		/* With -v, a filter is shown whole. */
		return !m->options->is_verbose &&
		       add(m, is_out ? FATHOM_TRACE_AFTER_SUCCESS : FATHOM_TRACE_BEFORE, range);
	}
	*ret_is_known = false;
	return false;
}

/* Adds what functions read whose count is an argument, or the result. */
static bool add_counted(struct fathom_plan_making *m, const struct fathom_type *type,
			bool *ret_is_known)
{
	const enum fathom_trace_when when = type->kind == FATHOM_KIND_FUNCTION
						    ? FATHOM_TRACE_BEFORE
						    : FATHOM_TRACE_AFTER_SUCCESS;
	fathom_decode_fn *const fn = fathom_decode_functions[type->a];
	const uint16_t text = fathom_plan_string_size(m->options);
	struct fathom_capture_range range;

	*ret_is_known = true;
	if (fn == fathom_decode_data || fn == fathom_decode_xattr_value)
		return type->n < FATHOM_DECODE_ARGUMENTS && add(m, when, counted(type->n, text));
	if (fn == fathom_decode_read_data || fn == fathom_decode_link_text ||
	    fn == fathom_decode_log_text || fn == fathom_decode_random ||
	    fn == fathom_decode_xattr_result)
		return add(m, when, counted(FATHOM_TRACE_COUNT_RESULT, text));
	if (fn == fathom_decode_key_data) {
		range = counted(FATHOM_TRACE_COUNT_RESULT, text);
		range.at_most = (uint8_t)(type->n + 1);
		return add(m, when, range);
	}
	if (fn == fathom_decode_sigset_sized)
		return add(m, when, counted(type->n ? type->n : m->n_types - 1, 8));
	if (fn == fathom_decode_affinity)
		return add(m, when, counted(type->n, AFFINITY));
	if (fn == fathom_decode_mincore) {
		range = elements(m, 1, 1);
		range.shift = 12;
		return add(m, when, range);
	}
	if (fn == fathom_decode_nodes) {
		range = elements(m, type->n, 8);
		range.shift = 6;
		return add(m, when, range);
	}
	if (fn == fathom_decode_msgbuf)
		return add_queue_message(m, when, type->n);
	*ret_is_known = false;
	return false;
}

/* Adds arrays that functions show element by element. */
static bool add_array(struct fathom_plan_making *m, const struct fathom_type *type,
		      bool *ret_is_known)
{
	fathom_decode_fn *const fn = fathom_decode_functions[type->a];
	struct fathom_capture_range range;

	*ret_is_known = true;
	if (fn == fathom_decode_pollfds) {
		range = elements(m, 1, POLLFD);
		range.width = 4;
		return add(m, FATHOM_TRACE_BEFORE, range);
	}
	if (fn == fathom_decode_epoll_events) {
		range = elements(m, FATHOM_TRACE_COUNT_RESULT,
				 m->machine == EM_X86_64 ? EPOLL_EVENT : GENERIC_EPOLL_EVENT);
		range.at_most = 3;
		return add(m, FATHOM_TRACE_AFTER_SUCCESS, range);
	}
	if (fn == fathom_decode_futex_waitv || fn == fathom_decode_sembufs) {
		range = elements(m, type->n, fn == fathom_decode_sembufs ? 6 : 24);
		range.width = 4;
		return add(m, FATHOM_TRACE_BEFORE, range);
	}
	if (fn == fathom_decode_iovec)
		return add_buffers(m, type->kind);
	if (fn == fathom_decode_dirents32 || fn == fathom_decode_dirents64)
		return add_directory(m);
	if (fn == fathom_decode_blocks)
		return add_blocks(m, type->n);
	if (fn == fathom_decode_fdset)
		return add_set(m, FATHOM_TRACE_BEFORE);
	if (fn == fathom_decode_pselect_mask)
		return add_mask_pointer(m);
	*ret_is_known = false;
	return false;
}

/* Adds strings that functions show; 0 bytes: @fn shows none. */
static uint16_t string_of(const struct fathom_plan_making *m, fathom_decode_fn *fn)
{
	const uint16_t text = fathom_plan_string_size(m->options);

	if (fn == fathom_decode_mq_name)
		return FATHOM_DECODE_PATH;
	if (fn == fathom_decode_memfd_name)
		return 250;
	if (fn == fathom_decode_vma_name)
		return 80;
	if (fn == fathom_decode_task_name)
		return text < 16 ? text : 16;
	if (fn == fathom_decode_interface)
		return text < 17 ? text : 17;
	if (fn == fathom_decode_mount_type || fn == fathom_decode_mount_data)
		return text;
	return 0;
}

/* Adds what is read both before the call and after it, or of another argument, too. */
static bool add_twice(struct fathom_plan_making *m, fathom_decode_fn *fn, bool *ret_is_known)
{
	const unsigned argument = m->argument;
	bool is_added;

	*ret_is_known = true;
	if (fn == fathom_decode_offset || fn == fathom_decode_offset64)
		return add_bytes(m, FATHOM_TRACE_BEFORE, 8) && add_bytes(m, FATHOM_TRACE_AFTER, 8);
	if (fn == fathom_decode_handle)
		return add_bytes(m, FATHOM_TRACE_BEFORE, 4) &&
		       add_bytes(m, FATHOM_TRACE_AFTER, HANDLE);
	if (fn == fathom_decode_ifconf)
		return add_interfaces(m);
	if (fn == fathom_decode_cap_data) {
		const enum fathom_trace_when when =
			m->is_late ? FATHOM_TRACE_AFTER_SUCCESS : FATHOM_TRACE_BEFORE;

		is_added = add_bytes(m, when, 24);
		/* The version says how long the sets are. */
		m->argument = 0;
		is_added = is_added && add_bytes(m, when, 8);
		m->argument = argument;
		return is_added;
	}
	*ret_is_known = false;
	return false;
}

bool fathom_plan_add_function(struct fathom_plan_making *m, const struct fathom_type *type)
{
	fathom_decode_fn *const fn = fathom_decode_functions[type->a];
	const bool is_before = type->kind == FATHOM_KIND_FUNCTION;
	bool is_known;
	bool is_added;

	if (is_before && is_plain_function(fn))
		return true;
	if (fn == fathom_decode_fanotify_directory)
		return !m->names_files;
	m->is_both = type->kind == FATHOM_KIND_FUNCTION_BOTH;
	if (fn == fathom_decode_cwd)
		return fathom_plan_add_string(m, FATHOM_TRACE_AFTER_SUCCESS, FATHOM_DECODE_PATH);
	if (string_of(m, fn))
		return fathom_plan_add_string(
			m, is_before ? FATHOM_TRACE_BEFORE : FATHOM_TRACE_AFTER_SUCCESS,
			string_of(m, fn));
	is_added = add_counted(m, type, &is_known);
	if (!is_known)
		is_added = add_of_socket(m, type, &is_known);
	if (!is_known)
		is_added = add_array(m, type, &is_known);
	if (!is_known)
		is_added = add_twice(m, fn, &is_known);
	if (!is_known)
		is_added =
			add_request(m, is_before ? FATHOM_TRACE_BEFORE : FATHOM_TRACE_AFTER_SUCCESS,
				    fn, &is_known);
	if (is_known)
		return is_added;
	for (size_t i = 0; i < sizeof structs / sizeof *structs; i++)
		if (structs[i].fn == fn)
			return !m->is_both &&
			       add_bytes(m,
					 is_before ? FATHOM_TRACE_BEFORE
						   : (enum fathom_trace_when)structs[i].when,
					 struct_size(m, i));
	return false;
}

/* Adds what is left of a timeout: 16 bytes of argument @argument. */
static bool add_left(struct fathom_plan_making *m, unsigned argument)
{
	m->argument = argument;
	return add_bytes(m, FATHOM_TRACE_AFTER_SUCCESS, 16);
}

/* Adds what is shown after the result of poll() and ppoll(): all descriptors count. */
static bool add_polled(struct fathom_plan_making *m)
{
	const struct fathom_capture_range all = { .flags = FATHOM_TRACE_WHOLE,
						  .count = 1,
						  .width = 4,
						  .size = POLLFD,
						  .most = 512 * POLLFD };

	m->argument = 0;
	return add(m, FATHOM_TRACE_AFTER_SUCCESS, all) && (m->n_types < 5 || add_left(m, 2));
}

/* Adds what is shown after the result of select() and pselect6(). */
static bool add_selected(struct fathom_plan_making *m)
{
	for (m->argument = 1; m->argument <= 3; m->argument++)
		if (!add_set(m, FATHOM_TRACE_AFTER_SUCCESS))
			return false;
	return add_left(m, 4);
}

bool fathom_plan_add_result(struct fathom_plan_making *m, uint16_t number)
{
	const struct fathom_type *type = &fathom_types[number];
	fathom_decode_fn *fn;

	m->is_late = m->is_both = false;
	if (type->kind <= FATHOM_KIND_ENUM)
		return true;
	if (type->kind != FATHOM_KIND_FUNCTION)
		return false;
	fn = fathom_decode_functions[type->a];
	if (fn == fathom_decode_polled)
		return add_polled(m);
	if (fn == fathom_decode_selected)
		return add_selected(m);
	return fn == fathom_decode_time_result || is_plain_function(fn);
}

/*
 * Adds to *@bytes and *@ranges what the ranges from @first to @end may take at the end of a call;
 * returns whether that can be too much for one event whatever they are.
 */
static bool may_be_too_much(const struct fathom_plan_making *m, unsigned first, unsigned end,
			    uint64_t times, uint64_t *bytes, uint64_t *ranges)
{
	bool is_too_much = false;

	for (unsigned i = first; i < end; i += 1u + m->ranges[i].n_inner) {
		const struct fathom_capture_range *p = &m->ranges[i];

		if (p->when == FATHOM_TRACE_BEFORE)
			continue;
		*bytes += times * (p->most + 7u + sizeof(struct fathom_trace_syscall_end));
		*ranges += times;
		is_too_much |= p->flags & (FATHOM_TRACE_WHOLE | FATHOM_TRACE_ENTRIES);
		if (p->n_inner && *bytes <= FATHOM_TRACE_SYSCALL_BYTES)
			is_too_much |= may_be_too_much(m, i + 1, i + 1 + p->n_inner,
						       times * (p->most / p->size), bytes, ranges);
	}
	return is_too_much || *bytes > FATHOM_TRACE_SYSCALL_BYTES || *ranges > FATHOM_TRACE_RANGES;
}

/* Returns where the ranges of @m stand in the plans already; how many those have if nowhere. */
static unsigned find_same(const struct fathom_plan_making *m)
{
	const struct fathom_trace_plans *plans = m->plans;
	const size_t size = m->n * sizeof *m->ranges;

	for (unsigned i = 0; i + m->n <= plans->n_ranges; i++)
		if (!memcmp(&plans->ranges[i], m->ranges, size))
			return i;
	return plans->n_ranges;
}

void fathom_plan_end_run(struct fathom_plan_making *m, struct fathom_trace_run *ret)
{
	struct fathom_trace_plans *plans = m->plans;
	uint64_t bytes = sizeof(struct fathom_trace_syscall_end);
	uint64_t ranges = 0;
	const unsigned first = find_same(m);

	if (first + m->n > FATHOM_TRACE_ALL_RANGES)
		return;
	if (first == plans->n_ranges) {
		memcpy(&plans->ranges[first], m->ranges, m->n * sizeof *m->ranges);
		plans->n_ranges += m->n;
	}
	*ret = (struct fathom_trace_run){
		.first = (uint16_t)first,
		.n = (uint8_t)m->n,
		.is_recorded = 1,
		.is_large = may_be_too_much(m, 0, m->n, 1, &bytes, &ranges),
	};
	for (unsigned i = 0; i < m->n; i++)
		if (m->ranges[i].when == FATHOM_TRACE_BEFORE)
			ret->has_before = 1;
		else
			ret->has_after = 1;
}
