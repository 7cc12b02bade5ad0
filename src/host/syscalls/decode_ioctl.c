/* SPDX-License-Identifier: MIT */
/* Requests of ioctl(2), and what they point to where no struct of syscalls.txt says it. */
#include "host/syscalls/syscall_functions.h"
#include "host/syscalls/decoder.h"

/* Parts of a request (asm-generic/ioctl.h): direction, size, type, number. */
static void put_made_request(struct fathom_decoder *d, uint32_t request)
{
	static const char *const ways[] = { "_IOC_NONE", "_IOC_WRITE", "_IOC_READ",
					    "_IOC_READ|_IOC_WRITE" };

	fathom_put(d, "_IOC(");
	fathom_put(d, ways[request >> 30]);
	fathom_put(d, ", ");
	fathom_put_hex(d, request >> 8 & 0xff);
	fathom_put(d, ", ");
	fathom_put_hex(d, request & 0xff);
	fathom_put(d, ", ");
	fathom_put_hex(d, request >> 16 & 0x3fff);
	fathom_put_char(d, ')');
}

void fathom_decode_ioctl_request(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t request = (uint32_t)o->value;
	const char *name;
	uint32_t from = 0;

	if (!d->out)
		return;
	if (!fathom_put_number_of_flags(d, request))
		return;
	name = fathom_constant_find(FATHOM_CONSTANTS_IOCTL, d->arch, request, &from);
	if (!name)
		put_made_request(d, request);
	/* Drivers use the same numbers. */
	while (name) {
		fathom_put(d, name);
		name = fathom_constant_find(FATHOM_CONSTANTS_IOCTL, d->arch, request, &from);
		fathom_put(d, name ? " or " : "");
	}
	fathom_put_end_of_flags(d);
}

/*
 * struct termios of the kernel: four words of flags, the line discipline, 19 characters; struct
 * termios2 has two speeds after that. In struct termio the flags are two bytes, the characters 8.
 */
#define TERMIOS     36
#define CHARACTERS  19
#define TERMIOS2    44
#define SPEEDS      36
#define TERMIO      17
#define CHARACTERS0 8
#define FLAG_WORDS  4

/* Names of c_cc; those of VMIN and VTIME are 6 and 5. */
static void put_characters(struct fathom_decoder *d, const uint8_t *bytes, unsigned n)
{
	static const char *const names[] = { "VINTR",  "VQUIT", "VERASE",   "VKILL",    "VEOF",
					     "VTIME",  "VMIN",  "VSWTC",    "VSTART",   "VSTOP",
					     "VSUSP",  "VEOL",  "VREPRINT", "VDISCARD", "VWERASE",
					     "VLNEXT", "VEOL2", "17",       "18" };

	fathom_put(d, ", c_cc=[");
	for (unsigned i = 0; i < n; i++) {
		fathom_put(d, i ? ", [" : "[");
		fathom_put(d, names[i]);
		fathom_put(d, "]=");
		fathom_put_hex(d, bytes[i]);
	}
	fathom_put_char(d, ']');
}

/* After an enumeration strace has a '|' also where no flag follows it. */
static void put_behind(struct fathom_decoder *d, enum fathom_constant_table table, uint32_t value)
{
	if (value)
		fathom_put_more_flags(d, table, value, false);
	else if (d->options->dialect == FATHOM_SYSCALL_STRACE)
		fathom_put_char(d, '|');
}

/* Delays of terminals that print: each has bits of its own, of which 0 has a name, too. */
static void put_c_oflag(struct fathom_decoder *d, uint32_t value)
{
	static const struct {
		enum fathom_constant_table table;
		uint32_t mask;
	} delays[] = {
		{ FATHOM_CONSTANTS_TERMIOS_NL, 0x100 },   { FATHOM_CONSTANTS_TERMIOS_CR, 0x600 },
		{ FATHOM_CONSTANTS_TERMIOS_TAB, 0x1800 }, { FATHOM_CONSTANTS_TERMIOS_BS, 0x2000 },
		{ FATHOM_CONSTANTS_TERMIOS_VT, 0x4000 },  { FATHOM_CONSTANTS_TERMIOS_FF, 0x8000 },
	};
	uint32_t rest = value;

	fathom_put(d, ", c_oflag=");
	for (size_t i = 0; i < sizeof delays / sizeof *delays; i++) {
		if (i)
			fathom_put_char(d, '|');
		fathom_put_enum(d, delays[i].table, value & delays[i].mask);
		rest &= ~delays[i].mask;
	}
	put_behind(d, FATHOM_CONSTANTS_TERMIOS_OFLAG, rest);
}

#define CBAUD   UINT32_C(0x100f)
#define CIBAUD  UINT32_C(0x100f0000)
#define IBSHIFT 16
#define CSIZE   UINT32_C(0x30)

static void put_c_cflag(struct fathom_decoder *d, uint32_t value)
{
	fathom_put(d, ", c_cflag=");
	fathom_put_enum(d, FATHOM_CONSTANTS_TERMIOS_BAUD, value & CBAUD);
	if (value & CIBAUD) {
		fathom_put_char(d, '|');
		fathom_put_enum(d, FATHOM_CONSTANTS_TERMIOS_BAUD, (value & CIBAUD) >> IBSHIFT);
		fathom_put(d, "<<IBSHIFT");
	}
	fathom_put_char(d, '|');
	fathom_put_enum(d, FATHOM_CONSTANTS_TERMIOS_CSIZE, value & CSIZE);
	put_behind(d, FATHOM_CONSTANTS_TERMIOS_CFLAG, value & ~(CBAUD | CIBAUD | CSIZE));
}

/* Flags without a 0 that stands for none. */
static void put_bits(struct fathom_decoder *d, const char *name, enum fathom_constant_table table,
		     uint32_t value)
{
	fathom_put(d, name);
	if (value)
		fathom_put_more_flags(d, table, value, true);
}

/* Prints flags of @width bytes, then the line discipline and @n characters. */
static void put_terminal(struct fathom_decoder *d, const uint8_t *bytes, uint8_t width, unsigned n)
{
	const uint8_t *line = bytes + FLAG_WORDS * width;
	uint32_t flags[FLAG_WORDS];

	for (size_t i = 0; i < FLAG_WORDS; i++)
		flags[i] = (uint32_t)fathom_decode_load(d, bytes + i * width, width);
	put_bits(d, "{c_iflag=", FATHOM_CONSTANTS_TERMIOS_IFLAG, flags[0]);
	put_c_oflag(d, flags[1]);
	put_c_cflag(d, flags[2]);
	put_bits(d, ", c_lflag=", FATHOM_CONSTANTS_TERMIOS_LFLAG, flags[3]);
	if (!d->is_verbose) {
		fathom_put(d, ", ...");
		return;
	}
	fathom_put(d, ", c_line=");
	fathom_put_enum(d, FATHOM_CONSTANTS_LINE_DISCIPLINES, *line);
	put_characters(d, line + 1, n);
}

void fathom_decode_termios(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[TERMIOS];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	put_terminal(d, bytes, 4, CHARACTERS);
	fathom_put_char(d, '}');
}

void fathom_decode_termios2(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[TERMIOS2];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	put_terminal(d, bytes, 4, CHARACTERS);
	if (d->is_verbose) {
		fathom_put(d, ", c_ispeed=");
		fathom_put_unsigned(d, load_u32(bytes + SPEEDS, false));
		fathom_put(d, ", c_ospeed=");
		fathom_put_unsigned(d, load_u32(bytes + SPEEDS + 4, false));
	}
	fathom_put_char(d, '}');
}

void fathom_decode_termio(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[TERMIO];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	put_terminal(d, bytes, 2, CHARACTERS0);
	fathom_put_char(d, '}');
}

/* A text that ends before the end of its field, else it is cut there. */
void fathom_decode_name(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint8_t *end = memchr(o->bytes, 0, o->n);

	fathom_put_quoted(d, o->bytes, end ? (size_t)(end - o->bytes) : o->n - 1, !end);
}

void fathom_decode_one_byte(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_data(d, o->value, 1);
}

#define INTERFACE_NAME 16  /* IFNAMSIZ */
#define FILE_LABEL     256 /* FSLABEL_MAX */

void fathom_decode_interface(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t limit = d->options->string_limit;

	fathom_put_string_of(d, o->value, limit < INTERFACE_NAME ? limit : INTERFACE_NAME);
}

void fathom_decode_label(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_string_of(d, o->value, FILE_LABEL - 1);
}

/* struct ifreq of SIOCGIFNAME: the number that asks, then the name that the kernel has stored. */
void fathom_decode_interface_name(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[INTERFACE_NAME + 4];
	const struct fathom_operand name = { .bytes = bytes, .n = INTERFACE_NAME };

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{ifr_ifindex=");
	fathom_put_signed(d, (int32_t)load_u32(bytes + INTERFACE_NAME, false));
	if (d->at_exit) {
		fathom_put(d, ", ifr_name=");
		fathom_decode_name(d, &name);
	}
	fathom_put_char(d, '}');
}

static bool put_interface(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return fathom_put_at(d, FATHOM_TYPE_IFREQ_ADDR, avma);
}

/* A length of struct ifconf, and how many elements that is. */
static void put_interfaces_length(struct fathom_decoder *d, int32_t length)
{
	const int32_t size = fathom_type_sizes[FATHOM_TYPE_IFREQ_ADDR][d->layout];

	fathom_put_signed(d, length);
	if (length < size || length % size || d->options->dialect != FATHOM_SYSCALL_STRACE)
		return;
	fathom_put(d, " /* ");
	fathom_put_signed(d, length / size);
	fathom_put(d, " * sizeof(struct ifreq) */");
}

/* struct ifconf: the size of an array, which the kernel changes, and its address. */
void fathom_decode_ifconf(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t size = fathom_type_sizes[FATHOM_TYPE_IFREQ_ADDR][d->layout];
	const bool has_failed = fathom_decode_has_failed(d);
	uint8_t before[16];
	uint8_t after[16];
	uint64_t array;
	int32_t length;

	if (!o->value || !(d->at_exit ? fathom_decode_get_before(d, o->value, before, 2 * d->word)
				      : fathom_decode_get(d, o->value, before, 2 * d->word))) {
		fathom_put_address(d, o->value);
		return;
	}
	memcpy(after, before, sizeof after);
	if (!has_failed && d->at_exit && !fathom_decode_get(d, o->value, after, 2 * d->word)) {
		fathom_put_address(d, o->value);
		return;
	}
	length = (int32_t)load_u32(after, false);
	array = fathom_decode_load(d, after + d->word, FATHOM_WIDTH_WORD);
	fathom_put(d, "{ifc_len=");
	if (array && load_u32(before, false) != (uint32_t)length) {
		put_interfaces_length(d, (int32_t)load_u32(before, false));
		fathom_put(d, " => ");
	}
	put_interfaces_length(d, length);
	fathom_put(d, ", ifc_buf=");
	if (has_failed || length < 0 || !d->at_exit)
		fathom_put_address(d, array);
	else
		fathom_put_array(d, array, (uint32_t)length / size, size, put_interface);
	fathom_put_char(d, '}');
}

static bool put_extent(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return fathom_put_at(d, FATHOM_TYPE_FIEMAP_EXTENT, avma);
}

/* struct fiemap: a head of 32 bytes, then the extents that the kernel has found. */
#define FIEMAP 32

void fathom_decode_fiemap_found(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint16_t size = fathom_type_sizes[FATHOM_TYPE_FIEMAP_EXTENT][d->layout];
	uint8_t bytes[FIEMAP];
	uint32_t n;

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{fm_flags=");
	fathom_put_flags(d, FATHOM_CONSTANTS_FIEMAP_FLAGS, load_u32(bytes + 16, false));
	n = load_u32(bytes + 20, false);
	fathom_put(d, ", fm_mapped_extents=");
	fathom_put_unsigned(d, n);
	if (d->is_verbose) {
		fathom_put(d, ", fm_extents=");
		/* There is room for as many as the caller has asked for. */
		n = n < load_u32(bytes + 24, false) ? n : load_u32(bytes + 24, false);
		fathom_put_array(d, o->value + FIEMAP, n, size, put_extent);
	} else {
		fathom_put(d, ", ...");
	}
	fathom_put_char(d, '}');
}

/* struct file_dedupe_range: a head of 24 bytes, then the ranges to share with. */
#define DEDUPE       24
#define DEDUPE_COUNT 16
#define DEDUPE_SHOWN 2 /* without -v */

static void put_ranges(struct fathom_decoder *d, uint64_t avma, uint32_t n, uint16_t type)
{
	const uint16_t size = fathom_type_sizes[type][d->layout];
	const uint32_t limit = d->is_verbose ? n : DEDUPE_SHOWN;
	uint32_t i = 0;

	fathom_put(d, "info=[");
	for (; i < n && i < limit && i < FATHOM_DECODE_ELEMENTS && fathom_decode_step(d); i++) {
		if (i)
			fathom_put(d, ", ");
		if (!fathom_put_at(d, type, avma + DEDUPE + (uint64_t)i * size))
			break;
	}
	fathom_put(d, i < n ? ", ...]" : "]");
}

void fathom_decode_dedupe_asked(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[DEDUPE];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{src_offset=");
	fathom_put_unsigned(d, load_u64(bytes, false));
	fathom_put(d, ", src_length=");
	fathom_put_unsigned(d, load_u64(bytes + 8, false));
	fathom_put(d, ", dest_count=");
	fathom_put_unsigned(d, load_u16(bytes + DEDUPE_COUNT, false));
	fathom_put(d, ", ");
	put_ranges(d, o->value, load_u16(bytes + DEDUPE_COUNT, false), FATHOM_TYPE_DEDUPE_ASKED);
	fathom_put_char(d, '}');
}

void fathom_decode_dedupe_done(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[DEDUPE];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put_char(d, '{');
	put_ranges(d, o->value, load_u16(bytes + DEDUPE_COUNT, false), FATHOM_TYPE_DEDUPE_DONE);
	fathom_put_char(d, '}');
}

/* struct rand_pool_info: two counts, then bytes. */
void fathom_decode_entropy(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t bytes[8];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{entropy_count=");
	fathom_put_signed(d, (int32_t)load_u32(bytes, false));
	fathom_put(d, ", buf_size=");
	fathom_put_signed(d, (int32_t)load_u32(bytes + 4, false));
	fathom_put(d, ", buf=");
	fathom_put_data(d, o->value + 8, load_u32(bytes + 4, false));
	fathom_put_char(d, '}');
}

/* The member of struct loop_info64 that says how much of the key counts. */
#define LOOP_KEY_SIZE (4 + 4 + 64 + 64)

void fathom_decode_loop_key(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint32_t size = load_u32(o->bytes - LOOP_KEY_SIZE, false);

	fathom_put_quoted(d, o->bytes, size < o->n ? size : o->n, false);
}

#define LOOP_CRYPT_TYPE (5 * 8 + 4)

/* struct loop_info64; what is about encryption is left out without -v unless there is some. */
void fathom_decode_loop_status(struct fathom_decoder *d, const struct fathom_operand *o)
{
	struct fathom_operand of = { .bytes = o->bytes, .avma = o->avma };
	uint64_t crypt;

	if (o->bytes) {
		crypt = load_u32(o->bytes + LOOP_CRYPT_TYPE, false);
	} else if (!fathom_decode_get_uint(d, o->value + LOOP_CRYPT_TYPE, 4, &crypt)) {
		fathom_put_address(d, o->value);
		return;
	}
	of.type = crypt || d->is_verbose ? FATHOM_TYPE_LOOP_INFO64 : FATHOM_TYPE_LOOP_INFO64_PLAIN;
	if (o->bytes)
		fathom_put_value(d, of.type, &of);
	else if (!fathom_put_at(d, of.type, o->value))
		fathom_put_address(d, o->value);
}

/* Bits that stand for the requests of a userfaultfd, with the names of their numbers. */
static void put_requests(struct fathom_decoder *d, enum fathom_constant_table table, uint64_t value)
{
	uint64_t rest = value;

	for (unsigned i = 0; i < 64; i++) {
		const char *name = value >> i & 1 ? fathom_constant_name(table, d->arch, i) : NULL;

		if (!name)
			continue;
		if (rest != value)
			fathom_put_char(d, '|');
		fathom_put(d, "1<<");
		fathom_put(d, name);
		rest &= ~(UINT64_C(1) << i);
	}
	if (rest && rest != value)
		fathom_put_char(d, '|');
	if (rest || !value)
		fathom_put_hex(d, rest);
}

void fathom_decode_uffd_range_requests(struct fathom_decoder *d, const struct fathom_operand *o)
{
	put_requests(d, FATHOM_CONSTANTS_UFFD_RANGE_REQUESTS, o->value);
}

/* struct uffdio_api: the features asked for, then those that there are. */
void fathom_decode_uffd_api(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint8_t before[24];
	uint8_t after[24];

	if (!(d->at_exit ? fathom_decode_get_before(d, o->value, before, sizeof before)
			 : fathom_decode_get(d, o->value, before, sizeof before)) ||
	    !fathom_decode_get(d, o->value, after, sizeof after)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{api=");
	fathom_put_hex(d, load_u64(before, false));
	fathom_put(d, ", features=");
	fathom_put_flags(d, FATHOM_CONSTANTS_UFFD_FEATURES, load_u64(before + 8, false));
	if (d->at_exit) {
		if (memcmp(before + 8, after + 8, 8)) {
			fathom_put(d, " => features=");
			fathom_put_flags(d, FATHOM_CONSTANTS_UFFD_FEATURES,
					 load_u64(after + 8, false));
		}
		fathom_put(d, ", ioctls=");
		put_requests(d, FATHOM_CONSTANTS_UFFD_REQUESTS, load_u64(after + 16, false));
	}
	fathom_put_char(d, '}');
}

static bool put_cpuid(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	(void)i;
	return fathom_put_at(d, FATHOM_TYPE_KVM_CPUID, avma);
}

/* struct kvm_cpuid2: a count and padding, then as many entries. */
void fathom_decode_kvm_cpuids(struct fathom_decoder *d, const struct fathom_operand *o)
{
	const uint16_t size = fathom_type_sizes[FATHOM_TYPE_KVM_CPUID][d->layout];
	uint64_t n;

	if (!o->value || fathom_decode_has_failed(d) ||
	    !fathom_decode_get_uint(d, o->value, 4, &n)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{nent=");
	fathom_put_unsigned(d, n);
	fathom_put(d, ", entries=");
	if (d->is_verbose)
		fathom_put_array(d, o->value + 8, n, size, put_cpuid);
	else
		fathom_put(d, n ? "[...]" : "[]");
	fathom_put_char(d, '}');
}

/* struct kvm_regs of x86-64; without -v those of them that change most. */
void fathom_decode_kvm_registers(struct fathom_decoder *d, const struct fathom_operand *o)
{
	static const struct {
		const char *name;
		bool is_shown;
	} registers[] = {
		{ "rax", true },  { "rbx", false },   { "rcx", false }, { "rdx", false },
		{ "rsi", false }, { "rdi", false },   { "rsp", true },  { "rbp", true },
		{ "r8", false },  { "r9", false },    { "r10", false }, { "r11", false },
		{ "r12", false }, { "r13", false },   { "r14", false }, { "r15", false },
		{ "rip", true },  { "rflags", true },
	};
	uint8_t bytes[8 * sizeof registers / sizeof *registers];

	if (!fathom_decode_get(d, o->value, bytes, sizeof bytes)) {
		fathom_put_address(d, o->value);
		return;
	}
	for (size_t i = 0; i < sizeof registers / sizeof *registers; i++) {
		if (registers[i].is_shown || d->is_verbose) {
			fathom_put(d, i ? ", " : "{");
			fathom_put(d, registers[i].name);
			fathom_put_char(d, '=');
			fathom_put_hex(d, load_u64(bytes + 8 * i, false));
		} else if (registers[i - 1].is_shown) {
			fathom_put(d, ", ...");
		}
	}
	fathom_put_char(d, '}');
}

static bool put_program(struct fathom_decoder *d, uint64_t avma, uint64_t i)
{
	uint64_t id;

	(void)i;
	if (!fathom_decode_get_uint(d, avma, 4, &id))
		return false;
	fathom_put_unsigned(d, id);
	return true;
}

/* struct perf_event_query_bpf: room, how many programs there are, and their numbers. */
void fathom_decode_perf_programs(struct fathom_decoder *d, const struct fathom_operand *o)
{
	uint64_t room;
	uint64_t n;

	if (!fathom_decode_get_uint(d, o->value, 4, &room)) {
		fathom_put_address(d, o->value);
		return;
	}
	fathom_put(d, "{ids_len=");
	fathom_put_unsigned(d, room);
	if (!d->at_exit || !fathom_decode_get_uint(d, o->value + 4, 4, &n)) {
		fathom_put(d, ", ...}");
		return;
	}
	fathom_put(d, ", prog_cnt=");
	fathom_put_unsigned(d, n);
	fathom_put(d, ", ids=");
	fathom_put_array(d, o->value + 8, n, 4, put_program);
	fathom_put_char(d, '}');
}

/* The namespace's type, a flag of clone(2). */
void fathom_decode_namespace_type(struct fathom_decoder *d, const struct fathom_operand *o)
{
	fathom_put_signed(d, (int32_t)o->value);
	if (!o->value)
		return;
	fathom_put(d, " (");
	fathom_put_flags(d, FATHOM_CONSTANTS_SETNS_TYPES, o->value);
	fathom_put_char(d, ')');
}
