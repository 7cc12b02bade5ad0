/* SPDX-License-Identifier: MIT */
/*
 * The table of system calls of x86-64, i386 and aarch64: numbers, names, arguments with their names
 * and C types, and the classes of strace(1). x32 is left out. Machines are EM_ constants.
 */
#ifndef FATHOM_SYSCALLS_SYSCALL_TABLE_H
#define FATHOM_SYSCALLS_SYSCALL_TABLE_H

#include "safe/base/bytes.h"

/* Classes: bits. */
enum fathom_syscall_class {
	FATHOM_SYSCALL_FILE = 1 << 0, /* takes a path */
	FATHOM_SYSCALL_DESC = 1 << 1, /* takes or returns a descriptor */
	FATHOM_SYSCALL_MEMORY = 1 << 2,
	FATHOM_SYSCALL_NETWORK = 1 << 3,
	FATHOM_SYSCALL_PROCESS = 1 << 4, /* begins, ends or waits for processes */
	FATHOM_SYSCALL_SIGNAL = 1 << 5,
	FATHOM_SYSCALL_IPC = 1 << 6, /* of System V */
	FATHOM_SYSCALL_CREDS = 1 << 7,
	FATHOM_SYSCALL_CLOCK = 1 << 8,
	FATHOM_SYSCALL_PURE = 1 << 9, /* takes nothing and cannot fail */
	FATHOM_SYSCALL_STAT = 1 << 10,
	FATHOM_SYSCALL_LSTAT = 1 << 11,
	FATHOM_SYSCALL_FSTAT = 1 << 12,
	FATHOM_SYSCALL_STAT_LIKE = 1 << 13, /* %%stat */
	FATHOM_SYSCALL_STATFS = 1 << 14,
	FATHOM_SYSCALL_FSTATFS = 1 << 15,
	FATHOM_SYSCALL_STATFS_LIKE = 1 << 16, /* %%statfs */
};

/* Names and C types are offsets in fathom_syscall_names. */
struct fathom_syscall {
	uint16_t name;
	uint16_t arguments; /* place of the first in fathom_syscall_arguments */
	uint16_t types;     /* likewise in fathom_type_lists */
	uint16_t result;    /* type; 0: a number, or an error */
	uint8_t n_arguments;
	uint8_t n_types;
	uint32_t classes;
};

struct fathom_syscall_argument {
	uint16_t name;
	uint16_t c_type;
};

/* The calls of one machine, by their numbers: rows, 0 where there is none. */
struct fathom_syscall_table {
	uint32_t machine;
	uint32_t n;
	const uint16_t *rows;
};

#define FATHOM_SYSCALL_TABLES 3

extern const char fathom_syscall_names[];
extern const struct fathom_syscall fathom_syscall_rows[];
extern const struct fathom_syscall_argument fathom_syscall_arguments[];
extern const struct fathom_syscall_table fathom_syscall_tables[FATHOM_SYSCALL_TABLES];
/* Rows of the calls that socketcall() and ipc() of i386 stand for, by their first argument. */
extern const uint16_t fathom_socketcall_rows[];
extern const uint32_t fathom_socketcall_rows_n;
extern const uint16_t fathom_ipc_rows[];
extern const uint32_t fathom_ipc_rows_n;

/* Returns the system call @number of @machine; NULL if there is none of that number. */
const struct fathom_syscall *fathom_syscall_find(uint32_t machine, uint64_t number);

/* Returns the number of the system call that is called @name on @machine; -1 if there is none. */
int32_t fathom_syscall_by_name(uint32_t machine, const char *name);

/* Returns the bit of @machine in the tables of constants and cases; 0 if it is not known. */
uint8_t fathom_syscall_arch_bit(uint32_t machine);

/* Returns the name of system call @number; NULL if it has none, also if it is none of @machine. */
const char *fathom_syscall_name(uint32_t machine, int64_t number);

/* Returns the name, or the C type, of argument @i of @call; NULL if it has fewer. */
const char *fathom_syscall_argument_name(const struct fathom_syscall *call, unsigned i);
const char *fathom_syscall_argument_type(const struct fathom_syscall *call, unsigned i);

#endif
