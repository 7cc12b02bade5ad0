/* SPDX-License-Identifier: MIT */
/* The text of system calls, from their records. */
#ifndef FATHOM_SYSCALLS_SYSCALL_FORMAT_H
#define FATHOM_SYSCALLS_SYSCALL_FORMAT_H

#include <limits.h>

#include "host/syscalls/syscall_record.h"
#include "safe/base/text.h"

enum fathom_syscall_dialect {
	FATHOM_SYSCALL_STRACE, /* as strace 6.1 prints it */
	FATHOM_SYSCALL_ARROW,  /* `openat(AT_FDCWD, "foo", O_RDONLY) → 3`, sizes with ' */
};

enum fathom_syscall_constants {
	FATHOM_SYSCALL_NAMES, /* O_RDONLY */
	FATHOM_SYSCALL_RAW,   /* 0 */
	FATHOM_SYSCALL_BOTH   /* 0 with its name in a comment */
};

/* Bytes of the longest text of what a descriptor is beside its path. */
#define FATHOM_FD_DETAIL 256

/* The file of a descriptor. */
struct fathom_fd_name {
	size_t path_size; /* 0: it has none, or it is not wanted */
	size_t detail_size;
	char path[PATH_MAX];
	/*
	 * "char 1:3", "TCP:[127.0.0.1:80]": without a path, it stands alone. After a NUL, the name
	 * of a UNIX socket, which ends the bracket.
	 */
	char detail[FATHOM_FD_DETAIL];
};

/* All zero is strace's default, but for the limit. */
struct fathom_syscall_options {
	uint32_t string_limit; /* bytes of strings, elements of arrays; 0: none */
	enum fathom_syscall_dialect dialect;
	enum fathom_syscall_constants constants;
	uint8_t hex;      /* 1: strings with other than ASCII characters; 2: all */
	bool is_verbose;  /* structs and arrays are not abbreviated */
	bool is_unpadded; /* the result follows at once, not in a column */
	uint8_t column;   /* of the result; 0: 40, as strace has it */
	uint8_t prefix;   /* columns before the text */
	/*
	 * Reports what a descriptor is: before the call, or after it, which may have closed or
	 * replaced it. Returns false if that is not known. -1: the current folder.
	 */
	bool (*name_fd)(void *data, int32_t fd, bool after, struct fathom_fd_name *ret);
	/* Is told of the @n bytes of each path. NULL: nobody is. */
	void (*see_path)(void *data, const char *path, size_t n);
	/* Appends the name of the function at @avma, for the seed's dialect. */
	bool (*name_code)(void *data, uint64_t avma, struct fathom_text *out);
	void *data;
};

#define FATHOM_SYSCALL_STRING_LIMIT 32

/* Where parts stand in the text: offsets. */
struct fathom_syscall_line {
	const char *name; /* NULL: it is not in the table */
	uint32_t entry;   /* end of what is known before the call */
	uint32_t exit;    /* end of the arguments, with the parenthesis */
	uint32_t result;  /* where the result begins */
	uint8_t n;        /* arguments that are shown */
	struct {
		const char *name;
		uint32_t begin;
		uint32_t end;
	} args[6];
	const char *error; /* name; NULL: it has not failed */
};

/*
 * Appends the text of the call to @out, which counts what does not fit. If the call has not ended,
 * only what is known before it: strace puts " <unfinished ...>" after that. @ret_line may be NULL.
 */
void fathom_syscall_format(const struct fathom_syscall_record *record,
			   const struct fathom_syscall_options *options, struct fathom_text *out,
			   struct fathom_syscall_line *ret_line);

/* Which bytes a call moves. */
enum fathom_dump { FATHOM_DUMP_NONE, FATHOM_DUMP_READ, FATHOM_DUMP_WRITE };

enum fathom_dump fathom_syscall_dump(uint32_t machine, uint64_t number);

/*
 * Appends the bytes that the call has read or written, as -e read= and -e write= of strace(1) have
 * them, if its record has them (FATHOM_SYSCALL_DUMPED).
 */
void fathom_syscall_format_dump(const struct fathom_syscall_record *record,
				const struct fathom_syscall_options *options,
				struct fathom_text *out);

#endif
