/* SPDX-License-Identifier: MIT */
#include "host/syscalls/syscall_table.h"

static const struct fathom_syscall_table *find_table(uint32_t machine)
{
	for (size_t i = 0; i < FATHOM_SYSCALL_TABLES; i++)
		if (fathom_syscall_tables[i].machine == machine)
			return &fathom_syscall_tables[i];
	return NULL;
}

const struct fathom_syscall *fathom_syscall_find(uint32_t machine, uint64_t number)
{
	const struct fathom_syscall_table *table = find_table(machine);

	if (!table || number >= table->n || !table->rows[number])
		return NULL;
	return &fathom_syscall_rows[table->rows[number]];
}

int32_t fathom_syscall_by_name(uint32_t machine, const char *name)
{
	const struct fathom_syscall_table *table = find_table(machine);

	for (uint32_t i = 0; table && i < table->n; i++)
		if (table->rows[i] &&
		    !strcmp(fathom_syscall_names + fathom_syscall_rows[table->rows[i]].name, name))
			return (int32_t)i;
	return -1;
}

uint8_t fathom_syscall_arch_bit(uint32_t machine)
{
	const struct fathom_syscall_table *table = find_table(machine);

	return (uint8_t)(table ? 1u << (table - fathom_syscall_tables) : 0);
}

const char *fathom_syscall_name(uint32_t machine, int64_t number)
{
	const struct fathom_syscall *call = fathom_syscall_find(machine, (uint64_t)number);

	return call ? fathom_syscall_names + call->name : NULL;
}

const char *fathom_syscall_argument_name(const struct fathom_syscall *call, unsigned i)
{
	return i < call->n_arguments
		       ? fathom_syscall_names + fathom_syscall_arguments[call->arguments + i].name
		       : NULL;
}

const char *fathom_syscall_argument_type(const struct fathom_syscall *call, unsigned i)
{
	return i < call->n_arguments
		       ? fathom_syscall_names + fathom_syscall_arguments[call->arguments + i].c_type
		       : NULL;
}
