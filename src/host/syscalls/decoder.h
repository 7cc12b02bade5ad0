/* SPDX-License-Identifier: MIT */
/*
 * The walk over the arguments of one system call. There is one walk, with two uses: while a call is
 * captured, it reads the program's memory, stores what it has read in the record, and prints
 * nothing; while a record is formatted, it reads the record. So what is captured is what will be
 * shown. It goes over the arguments twice: before the call, up to the first that is known only
 * afterwards, and after it. It allocates nothing.
 */
#ifndef FATHOM_SYSCALLS_DECODER_H
#define FATHOM_SYSCALLS_DECODER_H

#include "host/syscalls/syscall_format.h"
#include "host/syscalls/syscall_table.h"
#include "host/syscalls/syscall_types.h"
#include "host/syscalls/constant_names.h"
#include "safe/base/reader.h"

/* Arguments of one call, as they are shown: what selects may be followed by more than there are. */
#define FATHOM_DECODE_ARGUMENTS 6
/* Bytes of the largest struct of syscalls.txt. */
#define FATHOM_DECODE_STRUCT 512
/* Elements of one array that are looked at, whatever -s and -v say. */
#define FATHOM_DECODE_ELEMENTS 4096
/* Elements of all arrays and structs of one call: hostile records nest them. */
#define FATHOM_DECODE_STEPS (1u << 15)
/* Bytes of the text of one call, after which no further element is begun. */
#define FATHOM_DECODE_TEXT (1u << 20)
/* Bytes of a path. */
#define FATHOM_DECODE_PATH 4096

struct fathom_decoder {
	struct fathom_syscall_call call;
	const struct fathom_syscall *syscall; /* NULL: it is not in the table */
	const struct fathom_syscall_options *options;
	struct fathom_syscall_record *record;
	const struct fathom_reader *memory; /* NULL: the record is read */
	struct fathom_text *out;            /* NULL: nothing is printed */
	uint32_t steps;                     /* left */
	uint32_t dump_left;                 /* bytes of a dump: hostile records repeat them */
	size_t begin;                       /* of the text, in @out */
	uint16_t types[FATHOM_DECODE_ARGUMENTS];
	uint16_t result_type;
	uint8_t n;      /* arguments that are shown */
	uint8_t word;   /* bytes of a long */
	uint8_t layout; /* as in syscall_types.h */
	uint8_t arch;   /* bit, in tables of constants */
	bool at_exit;
	bool is_verbose;   /* structs and arrays are not abbreviated */
	bool is_result;    /* it is printed now */
	bool is_indirect;  /* of ipc() of i386: an argument was read from memory */
	uint64_t iov_left; /* bytes of the buffers of an iovec that are still shown */
	bool iov_is_address;
	uint8_t argument; /* the one that is printed */
	uint16_t element; /* type of the elements of the array that is printed */
};

/* A value: of a register, of a field in bytes that were read, or at an address. */
struct fathom_operand {
	uint64_t value;       /* loaded, or the address of what is read */
	const uint8_t *bytes; /* of a field; NULL: in a register */
	uint64_t avma;        /* where the field is; 0: in a register */
	uint32_t n;           /* of the type: which argument counts, or the size of the field */
	uint16_t type;
};

/* Reads memory as it is in this half of the walk; returns how many bytes there are. */
size_t fathom_decode_read(struct fathom_decoder *d, uint64_t avma, void *to, size_t size);
/* The same for what is shown also of calls whose structs are not. */
size_t fathom_decode_take(struct fathom_decoder *d, uint64_t avma, void *to, size_t size);
/* Reads all of it, or returns false. */
bool fathom_decode_get(struct fathom_decoder *d, uint64_t avma, void *to, size_t size);
/* After the call: reads what was read before it. */
bool fathom_decode_get_before(struct fathom_decoder *d, uint64_t avma, void *to, size_t size);
/* Reads a number of 4 or 8 bytes, or a long (FATHOM_WIDTH_WORD). */
bool fathom_decode_get_uint(struct fathom_decoder *d, uint64_t avma, uint8_t width, uint64_t *ret);
uint64_t fathom_decode_load(const struct fathom_decoder *d, const uint8_t *bytes, uint8_t width);

bool fathom_decode_has_failed(const struct fathom_decoder *d);
/* Returns the argument, cut to 32 bits, with sign. */
int32_t fathom_decode_int(const struct fathom_decoder *d, unsigned argument);
/* Returns the number that an operand's type counts by: an argument, or the result. */
uint64_t fathom_decode_count(const struct fathom_decoder *d, uint32_t source);
/* Takes one of the steps that are left; false if there is none. */
bool fathom_decode_step(struct fathom_decoder *d);

/* Printing. All do nothing while a call is captured. */
void fathom_put_bytes(struct fathom_decoder *d, const void *bytes, size_t n);
void fathom_put_char(struct fathom_decoder *d, char c);
void fathom_put(struct fathom_decoder *d, const char *text);
/* Spaces from column @from on up to @to. */
void fathom_put_spaces(struct fathom_decoder *d, size_t to, size_t from);
void fathom_put_unsigned(struct fathom_decoder *d, uint64_t value);
void fathom_put_signed(struct fathom_decoder *d, int64_t value);
/* A size: the seed's dialect groups its digits. */
void fathom_put_size(struct fathom_decoder *d, uint64_t value);
void fathom_put_hex(struct fathom_decoder *d, uint64_t value);
/* At least @digits digits, with 0 in front of others. */
void fathom_put_octal(struct fathom_decoder *d, uint64_t value, unsigned digits);
void fathom_put_padded(struct fathom_decoder *d, uint64_t value, unsigned digits);
void fathom_put_address(struct fathom_decoder *d, uint64_t value);
void fathom_put_code(struct fathom_decoder *d, uint64_t value); /* a pointer to a function */
void fathom_put_fd(struct fathom_decoder *d, int32_t fd);
void fathom_put_dirfd(struct fathom_decoder *d, int32_t fd);
void fathom_put_uid(struct fathom_decoder *d, uint32_t id);
void fathom_put_signal(struct fathom_decoder *d, int32_t number);
void fathom_put_short_signal(struct fathom_decoder *d, int32_t number); /* without SIG */
void fathom_put_mode(struct fathom_decoder *d, uint32_t mode);
void fathom_put_dev(struct fathom_decoder *d, uint64_t dev);
void fathom_put_errno(struct fathom_decoder *d, uint32_t number);
/* A comment as C has it; the seed's dialect leaves it out. */
void fathom_put_comment(struct fathom_decoder *d, const char *text);
/* The UTC time of @seconds, and of @nanoseconds if it is not 0, as a comment. */
void fathom_put_date(struct fathom_decoder *d, int64_t seconds, uint64_t nanoseconds);
void fathom_put_date_plain(struct fathom_decoder *d, int64_t seconds, uint64_t nanoseconds);

void fathom_put_enum(struct fathom_decoder *d, enum fathom_constant_table table, uint64_t value);
void fathom_put_flags(struct fathom_decoder *d, enum fathom_constant_table table, uint64_t value);
/*
 * Appends the names of flags to what stands there, each after a '|' unless @is_first. What has no
 * name is appended as a number. Returns whether something was appended.
 */
bool fathom_put_more_flags(struct fathom_decoder *d, enum fathom_constant_table table,
			   uint64_t value, bool is_first);

/*
 * For texts of several tables: prints the number if it is wanted; returns whether names are, which
 * fathom_put_end_of_flags() ends.
 */
bool fathom_put_number_of_flags(struct fathom_decoder *d, uint64_t value);
void fathom_put_end_of_flags(struct fathom_decoder *d);
/* Begins a comment if a number is to have its name after it. */
bool fathom_put_both(struct fathom_decoder *d);

/* A text with quotes and escapes; "..." after it if @is_cut. */
void fathom_put_quoted(struct fathom_decoder *d, const uint8_t *bytes, size_t n, bool is_cut);
/* The same without quotes; brackets, <>, are escaped. */
void fathom_put_in_brackets(struct fathom_decoder *d, const uint8_t *bytes, size_t n);
/* The same as fathom_put_quoted(), always in hexadecimal. */
void fathom_put_quoted_hex(struct fathom_decoder *d, const uint8_t *bytes, size_t n, bool is_cut);
/* The C string at @avma; an address if it cannot be read. */
void fathom_put_path(struct fathom_decoder *d, uint64_t avma);
void fathom_put_string(struct fathom_decoder *d, uint64_t avma);
/* A C string of at most @limit bytes, of which the kernel takes no more than @limit. */
void fathom_put_string_of(struct fathom_decoder *d, uint64_t avma, size_t limit);
/* @n bytes of data, up to the limit. */
void fathom_put_data(struct fathom_decoder *d, uint64_t avma, uint64_t n);

/* Prints a value of type @type. */
void fathom_put_value(struct fathom_decoder *d, uint16_t type, const struct fathom_operand *o);
/* Prints what is in memory at @avma; false if it cannot be read, then nothing was printed. */
bool fathom_put_at(struct fathom_decoder *d, uint16_t type, uint64_t avma);
/* Prints what a pointer points to: NULL, an address if that cannot be read, else the value. */
void fathom_put_pointer(struct fathom_decoder *d, uint16_t type, uint64_t avma);

/* Prints one element of an array; false if it cannot be read. */
typedef bool fathom_put_element_fn(struct fathom_decoder *d, uint64_t avma, uint64_t i);
/*
 * Prints the array of @n elements of @size bytes at @avma, with brackets: up to the limit, unless
 * all is asked for.
 */
void fathom_put_array(struct fathom_decoder *d, uint64_t avma, uint64_t n, size_t size,
		      fathom_put_element_fn *put);

/* Prints @n structs iovec; of their buffers up to @limit bytes, or only the addresses. */
void fathom_put_iovecs(struct fathom_decoder *d, uint64_t avma, uint64_t n, uint64_t limit,
		       bool is_address);

/* Prints the struct sock_fprog at @avma, of a filter for packets. */
void fathom_put_packet_filter(struct fathom_decoder *d, uint64_t avma);

/* Replaces socketcall() and ipc() of i386, and their arguments, by the call that they stand for. */
void fathom_decode_enter_subcall(struct fathom_decoder *d);

/* Sets the types of the arguments, and the number of those that are shown. */
void fathom_decode_begin(struct fathom_decoder *d);
/* Walks over one half of the arguments. @marks has where each begins and ends in the text. */
void fathom_decode_half(struct fathom_decoder *d, bool at_exit, struct fathom_syscall_line *marks);
/*
 * Walks over all arguments that are known before the call, in whatever half they are shown, so that
 * the options are told of each path and descriptor.
 */
void fathom_decode_mentions(struct fathom_decoder *d);
/* Prints the bytes that the call has read, or writes: those that are known in this half. */
void fathom_decode_dump(struct fathom_decoder *d, bool at_exit);
/* Prints the result of a call that has not failed, and what is said after it. */
void fathom_decode_result(struct fathom_decoder *d);

#endif
